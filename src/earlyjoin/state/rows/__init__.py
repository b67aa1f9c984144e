"""Rows by number, stored column by column until they are built into output."""
