"""Measurements for people: benchmarks against other engines."""
