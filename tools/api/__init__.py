"""The API reference: pages written from docstrings, each object with its source in a fold.

quartodoc reads ``docs/api/_quartodoc.yml``, finds the objects in the source and parses their
docstrings. How a page looks is decided here, because quartodoc's own tables cannot hold equations
and say nothing about the fields of our records. A formula shows the same datasheet as in a
notebook.
"""
