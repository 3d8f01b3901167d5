"""What an audit returns, and the ways a person reads it."""
