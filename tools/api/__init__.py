"""The API reference: pages written from docstrings, each object with its source in a fold.

quartodoc reads ``docs/api/_quartodoc.yml``, finds the objects in the source and parses their
docstrings. This package renders the pages, because quartodoc's own tables cannot contain equations
and do not show the fields of our records. A formula shows the same datasheet as in a
notebook.
"""
