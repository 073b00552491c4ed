"""What a built site offers to machines: page cards, a sitemap, a list for language models.

Both renderers' output goes through here, so that neither has to know how it is done. Cards and
sitemaps want full addresses, which a site that may be served anywhere does not have: a publishing
job names its own in ``MLSYSIM_SITE_URL``. Without it, paths stand in their place.
"""
