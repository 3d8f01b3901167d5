"""How accurate predicted treatment effects are."""
