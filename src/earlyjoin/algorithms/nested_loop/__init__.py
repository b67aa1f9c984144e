"""Block nested loop join."""
