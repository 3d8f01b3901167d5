"""Which groups differ, and by how much."""
