"""Files of a running join: spill runs, flags, checksums, ownership."""
