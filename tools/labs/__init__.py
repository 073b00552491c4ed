"""Bundles what the lab pages need to run the package in a reader's browser."""
