"""What a score means in each group."""
