"""A strict replacement for Quarto that renders exactly the pages that ``tools.pages`` accepts.

For each page, ``execute`` runs the cells, ``compose`` inserts their outputs into the text,
``render`` converts it to HTML with pandoc and ``filter.lua``, and ``site`` adds the navigation.
"""
