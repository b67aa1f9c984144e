"""Symmetric hash join."""
