"""Join algorithms: one module each, behind one protocol. The registry knows which there are."""
