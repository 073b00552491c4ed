"""The first edition's code blocks are run by their test, and are no modules of their own."""

collect_ignore_glob = ["seed_code/*"]
