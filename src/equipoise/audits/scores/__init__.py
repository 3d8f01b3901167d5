"""Whether a score means the same for every group."""
