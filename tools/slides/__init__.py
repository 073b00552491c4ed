"""Slides of a page: its questions, predictions, figures and results, computed by this version."""
