"""The harness of golden scripts itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.errors import SqlSyntaxError
from tests.scripts.golden import REWRITE, run_script


def shout(text: str) -> str:
    if text == "fail":
        raise SqlSyntaxError("cannot be read", hint="say something else")
    if text == "crash":
        raise KeyError(text)
    return text.upper().replace(" ", "\n")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "behaviour.txt"


def printed(script: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    script.write_text(text)
    monkeypatch.setenv(REWRITE, "1")
    run_script(script, shout)
    monkeypatch.delenv(REWRITE)
    run_script(script, shout)
    return script.read_text()


def test_outputs_are_filled_in_below_their_inputs(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# first\n\none two\n---\n\n# second\nthree"
    assert printed(script, text, monkeypatch) == "# first\n\none two\n---\nONE\nTWO\n\n# second\nthree\n---\nTHREE\n"


def test_a_changed_output_fails_and_is_rewritten_on_demand(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script.write_text("one\n---\nTWO\n")
    with pytest.raises(AssertionError, match="prints something else"):
        run_script(script, shout)
    assert printed(script, "one\n---\nTWO\n", monkeypatch) == "one\n---\nONE\n"


def test_blank_lines_of_an_input_are_kept_and_those_of_an_output_marked(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(script, "a\n\nb\n---\n", monkeypatch) == "a\n\nb\n---\n> A\n>\n> B\n"


def test_an_error_of_ours_is_output(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = "fail\n---\nSqlSyntaxError: cannot be read\n  do:  say something else\n"
    assert printed(script, "fail\n---\n", monkeypatch) == expected


def test_any_other_exception_names_script_and_line(script: Path) -> None:
    script.write_text("one\n---\nONE\n\ncrash\n---\n")
    with pytest.raises(AssertionError, match=r"behaviour\.txt, line 5: KeyError"):
        run_script(script, shout)


def test_comments_below_the_last_case_stay(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(script, "one\n---\n\n# the end\n", monkeypatch) == "one\n---\nONE\n\n# the end\n"
