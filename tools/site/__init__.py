"""What a built site offers to machines: cards, Markdown copies, a search index, lists of pages.

This works on the output of both renderers, so neither needs its own version. Cards and sitemaps
require full addresses, but the site can be served anywhere. A publishing job therefore names its
address in ``MLSYSIM_SITE_URL``. Without it, paths are used instead.
"""
