"""Joins on sorted runs: PMJ and the sort-merge joins that it is compared with."""
