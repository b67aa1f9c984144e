"""What a hash join is expected to give and to cost."""
