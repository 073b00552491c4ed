"""Fits of the registry's constants to rows marked ``calibrate``, one program per kind."""
