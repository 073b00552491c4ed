"""Pages: what a page is, how it is read and checked, and the notebook made of it.

The page tests, the notebooks and the preview all start here. ``project`` finds the pages, ``pages``
splits each into words and cells, ``lint`` (with ``schema``) holds it to the constructs that we use,
``scan`` and ``links`` check where a rendered page leads. What is wrong is a ``Fault`` with its file
and line. A construct that no page uses is refused: to use one, add it to ``schema.yml`` or
``lint`` first, then to the renderer and its test.
"""

# What cells of pages read, besides their page: when it changes, they are run again. The two of
# docs/api say where the reference shows a name.
RESTS_ON = (
    "mlsysim",
    "measurements",
    "docs/references.bib",
    "docs/api/objects.json",
    "docs/api/topics.json",
    "examples",
)
