"""The partitioned hash table: parts of partitions in memory and on disk."""
