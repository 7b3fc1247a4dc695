"""``python -m everview.cli``: the same as ``everview``."""

from everview.cli.app import main

if __name__ == "__main__":
    main()
