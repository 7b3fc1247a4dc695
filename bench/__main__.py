"""``python -m bench``: the report (see :mod:`bench.report.__main__`)."""

import sys

from bench.report.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
