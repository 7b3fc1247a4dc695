"""Errors of other processes, raised here as what they were.

Spark brings an error of a task, of the source or of a batch back as a text that holds a
Python or a Java stack, and out of that text the error is made again.
"""

from __future__ import annotations

import re

from everview import errors
from everview.errors import EverviewError

_RAISED = re.compile(
    r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)): ([^\n]*(?:\n  (?:why|do): [^\n]*)*)", re.M
)
_JAVA = re.compile(r"^(?:: |Caused by: )(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception)): ([^\n]*)", re.M)
_DETAIL = re.compile(r"^  why: (.*)$", re.M)
_HINT = re.compile(r"^  do:  (.*)$", re.M)
_NO_ANSWER = re.compile(r"StatusCode\.UNAVAILABLE|RETRIES_EXCEEDED|INVALID_HANDLE\.SESSION")
_NOT_THERE = re.compile(r"No module named '?(everview[\w.]*)")


def error_of(error: Exception, what: str) -> EverviewError:
    """An error that comes back from a task or from the source as text, as what it was there:
    no user should have to read a Java stack for it."""
    text = str(error)
    raised = _RAISED.findall(text)
    for name, lines in reversed(raised):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, EverviewError):
            detail, hint = _DETAIL.search(lines), _HINT.search(lines)
            return kind(lines.splitlines()[0], detail=detail and detail[1], hint=hint and hint[1])
    missing = _NOT_THERE.search(text)
    if missing is not None:
        return EverviewError(
            what,
            detail=f"the Python that Spark runs finds no module {missing[1]}",
            hint="install everview wherever Spark runs Python; PYSPARK_PYTHON names the one that it runs",
        )
    if _NO_ANSWER.search(text):
        return EverviewError(
            what,
            detail="the server of Spark Connect does not answer",
            hint="start it, and then the pipeline, which goes on where it was",
        )
    known = raised[-1:] or _JAVA.findall(text)[:1]
    return EverviewError(what, detail=": ".join(known[0]) if known else text.strip().partition("\n")[0])
