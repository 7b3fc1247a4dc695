"""WINDOW clauses, written out where they are used.

::

    SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY a)     SELECT sum(x) OVER (PARTITION BY a) FROM t
"""

from __future__ import annotations

from sqlglot import exp


def named_windows(select: exp.Select) -> None:
    defined: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        _write_out(window, defined)
        defined[window.name] = window
    select.set("windows", None)
    for window in select.find_all(exp.Window):
        if window.parent_select is select:
            _write_out(window, defined)


def _write_out(window: exp.Window, defined: dict[str, exp.Window]) -> None:
    name = window.args.get("alias")
    if name is None or name.name not in defined:
        return
    base = defined[name.name].copy()
    window.set("alias", None)
    for key in ("partition_by", "order", "spec"):
        if not window.args.get(key) and base.args.get(key):
            window.set(key, base.args[key])
