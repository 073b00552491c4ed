"""Pages: how they are read and checked, and the notebooks made from them.

The page tests, the notebooks and the preview use this package. ``project`` finds the pages,
``pages`` splits each into text and cells, ``lint`` (with ``schema``) accepts only the constructs
that we use, and ``scan`` and ``links`` check the links of rendered pages. Every mistake is a
``Fault`` with its file and line. A construct that no page uses is refused; to use one, first add it
to ``schema.yml`` or ``lint``, then to the renderer and its test.
"""

# What cells of pages read, besides their page: when it changes, they are run again. The two of
# docs/api say where the reference shows a name.
RESTS_ON = (
    "mlsysim",
    "course",
    "research",
    "docs/api/objects.json",
    "docs/api/topics.json",
    "examples",
)
# Only pages with this line, which site.js looks for, have code blocks that run in a browser:
# tutorials, and other pages with exercises.
EXERCISES = "from mlsysim_course import check"
