"""CSV and JSON lines."""
