"""Names, types and conditions between Spark and the core."""
