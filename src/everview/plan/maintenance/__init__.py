"""Relations to a maintenance plan: steps, their state, and zones."""
