"""A strict stand-in for Quarto: renders exactly the pages that ``tools.pages`` accepts.

The way of a page: ``execute`` runs its cells, ``compose`` puts their outputs among its words,
``render`` has pandoc and ``filter.lua`` make HTML of it, ``site`` frames it.
"""
