"""The commands, one file each. A command imports what it needs when it is called."""
