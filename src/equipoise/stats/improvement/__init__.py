"""Whether an alternative is more accurate and less unequal."""
