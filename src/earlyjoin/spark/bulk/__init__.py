"""The bulk phase: what joins everything."""
