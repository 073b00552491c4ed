"""Measurements of load generators compared with predictions."""
