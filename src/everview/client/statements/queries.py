"""SELECT: answered as it is read."""

from __future__ import annotations

from everview.client.reading import Context, result_columns
from everview.client.result import Result
from everview.client.system_tables import SystemNames
from everview.sql.check import check
from everview.sql.statements import Select


def select(context: Context, statement: Select) -> Result:
    snapshot, definitions = context.opened([statement.query])
    try:
        checked = check(
            statement.query,
            SystemNames(definitions),
            statement.source,
            allow_volatile=True,
            allow_duplicates=True,
        )
        columns = result_columns(checked.columns)
        answer = context.answer(checked.tree, columns, definitions, snapshot)
    except BaseException:
        snapshot.close()
        raise

    def close() -> None:
        answer.close()
        snapshot.close()

    return Result(columns, answer, close=close)
