"""A strict stand-in for Quarto: renders exactly what our pages use and fails on the rest.

The way of a page: ``project`` finds it, ``pages`` splits it, ``lint`` (with ``schema``) reads it,
``execute`` runs its cells, ``compose`` puts their outputs among its words, ``render`` has pandoc
and ``filter.lua`` make HTML of it, ``scan`` and ``links`` check where it leads, ``site`` frames it.
What is wrong is a ``Fault`` with its file and line. A construct that no page uses is not supported:
whoever needs one adds it to ``schema.yml`` or ``lint`` first, then to the renderer and its test.
"""
