"""Inputs that can be read once: pipes and standard input."""
