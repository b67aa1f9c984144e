"""What is known of Spark's inputs before they are joined: plans, scans, files, samples."""
