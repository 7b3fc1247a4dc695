"""How hypothesis draws, in all tests: the same examples every time, and none of them is too slow.

``EVERVIEW_HYPOTHESIS=random`` draws anew in every run, ``thorough`` also tries harder where a test can;
a failure prints what repeats it.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "everview",
    deadline=None,
    derandomize="EVERVIEW_HYPOTHESIS" not in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("everview")
