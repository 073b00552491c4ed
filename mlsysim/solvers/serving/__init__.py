"""How fast does a device, or a node, answer prompts?"""
