"""Whether the disparity is necessary."""
