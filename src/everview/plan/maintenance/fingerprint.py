"""Fingerprints: names of meanings.

A fingerprint is a hash over canonical JSON of what a step does and of the
fingerprints of its inputs, so it is the same in every process and version that means the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any


def fingerprint(operator: str, parameters: Any, inputs: Sequence[str] = ()) -> str:
    """Of a step, or of a state (whose input is its step)."""
    text = json.dumps([operator, parameters, list(inputs)], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def member_fingerprint(template: str, constants: Sequence[str]) -> str:
    """Of one member's part of what its family keeps; without constants the thing itself."""
    return fingerprint("member", list(constants), [template]) if constants else template
