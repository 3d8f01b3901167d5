"""Whether predicted effects are equally accurate."""
