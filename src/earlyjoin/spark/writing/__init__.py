"""Taking the result of a join to a directory."""
