"""Merges of sorted runs of two sides or more that join on equality on the way (HMJ, RPJ, PMJ of many inputs)."""
