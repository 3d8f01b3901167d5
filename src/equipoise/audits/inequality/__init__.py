"""How unequally benefits are spread."""
