"""Join algorithms on a partitioned hash table, and what they are expected to give and to cost."""
