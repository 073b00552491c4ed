"""A strict stand-in for Quarto: renders exactly what our pages use and fails on the rest."""
