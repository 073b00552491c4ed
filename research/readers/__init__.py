"""Readers of published tables: their rows as arguments of the solvers, and as predictions."""
