"""Merges of sorted runs of a partition, for HMJ and RPJ."""
