"""From Arrow columns to keys."""
