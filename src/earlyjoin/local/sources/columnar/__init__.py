"""Parquet and Arrow IPC."""
