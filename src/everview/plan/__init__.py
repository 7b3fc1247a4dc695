"""A checked tree to relations, operators and zones."""
