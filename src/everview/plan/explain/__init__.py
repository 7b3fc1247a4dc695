"""EXPLAIN: a maintenance plan for people (text, SVG) and for programs (JSON)."""

from __future__ import annotations

from everview.plan.explain.json import explain_json
from everview.plan.explain.svg import explain_svg
from everview.plan.explain.text import explain_text

__all__ = ["explain_json", "explain_svg", "explain_text"]
