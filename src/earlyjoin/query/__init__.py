"""What the queries of both engines share."""
