"""The commands, one file each. What they need is imported when they are called."""
