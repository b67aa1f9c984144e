"""The early phase: what is joined in this process before Spark's own join."""
