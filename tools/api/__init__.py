"""The API reference: pages written from docstrings, and the listings that they link to.

quartodoc reads ``docs/api/_quartodoc.yml``, finds the objects in the source (nothing is imported)
and parses their docstrings. How a page looks is decided here, because quartodoc's own tables
cannot hold equations and say nothing about the fields of our records.
"""
