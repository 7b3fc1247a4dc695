"""Rewrites ``docs/life-of-a-change.md``."""

from __future__ import annotations

from tests.walk.page import PAGE, rendered, trace

PAGE.write_text(rendered(trace()))
