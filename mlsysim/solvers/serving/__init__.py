"""How fast does a device or a node serve requests?"""
