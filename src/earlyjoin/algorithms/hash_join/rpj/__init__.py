"""Rate-based progressive join."""
