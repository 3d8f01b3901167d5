"""Plans: questions in a file, asked, gated and kept."""
