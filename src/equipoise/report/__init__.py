"""The self-contained HTML page."""
