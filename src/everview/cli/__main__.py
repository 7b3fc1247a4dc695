"""``python -m everview.cli``: the same as ``everview``."""

from everview.cli.app import main

main()
