"""From arriving rows to keys, and from candidate pairs to results of a join type."""
