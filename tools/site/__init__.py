"""What a built site offers to machines: cards, Markdown copies, a search index, lists of pages.

Both renderers' output goes through here, so that neither has to know how it is done. Cards and
sitemaps want full addresses, which a site that may be served anywhere does not have: a publishing
job names its own in ``MLSYSIM_SITE_URL``. Without it, paths are used instead.
"""
