"""SQL text to a checked tree."""
