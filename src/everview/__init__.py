"""Everview keeps SQL views of key-value tables up to date."""
