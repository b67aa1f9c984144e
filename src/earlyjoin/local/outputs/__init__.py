"""Files and streams that take the result."""
