"""What a monitor remembers between batches, and the file it is kept in."""
