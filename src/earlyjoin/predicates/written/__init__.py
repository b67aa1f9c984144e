"""Conditions as people write them, and as plain values that can be kept."""
