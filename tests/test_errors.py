"""Errors are an API: a drawn tree, four parts, and a way through pickles."""

import inspect
import pickle
import re

import pytest

from everview import errors
from everview.errors import EverviewError, SqlError, StoreFullError

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, EverviewError)]


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = re.findall(r"^    ([│ ├└─]*)(\w+)(?: |$)(.*)$", errors.__doc__ or "", re.M)
    depth_of = {name: len(lines) // 4 for lines, name, _ in drawn if name.endswith("Error")}
    assert depth_of.keys() == {found.__name__ for found in CLASSES}
    for found in CLASSES:
        assert depth_of[found.__name__] == len(found.__mro__) - len(EverviewError.__mro__), found.__name__
    retryable = {name for _, name, text in drawn if text.endswith("(retryable)")}
    assert retryable == {found.__name__ for found in CLASSES if found.retryable}


def test_all_parts_are_shown() -> None:
    error = StoreFullError("it is full", detail="no space", hint="make some")
    assert str(error) == "it is full\n  why: no space\n  do:  make some"
    assert str(EverviewError("plain")) == "plain"


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_a_pickle(kind: type[EverviewError]) -> None:
    error = kind("what", detail="why", hint="do")
    if isinstance(error, SqlError):
        error.line, error.column = 3, 7
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert again.__dict__ == error.__dict__
