"""Array-level engines: numbers in, one frozen result out. They need numpy and scipy only."""
