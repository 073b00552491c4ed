"""What Quarto does not do for the site: pictures of cards, and a search that finds every term."""
