"""SELECT: answered as it is read."""

from __future__ import annotations

from everview.catalog import Definitions
from everview.client.answers import Answer
from everview.client.reading import SessionContext, result_columns
from everview.client.result import Result
from everview.client.system_tables import SystemNames
from everview.errors import EverviewError, UnknownObjectError
from everview.sql.check import check
from everview.sql.dialects import to_sql
from everview.sql.own_parse import is_trusted
from everview.sql.statements import Select
from everview.sql.words import worded
from everview.store.contract import TableSnapshot


def select(context: SessionContext, statement: Select) -> Result:
    snapshot, definitions = context.opened([statement.query])
    try:
        answer = _answer(context, statement, definitions, snapshot)
    except BaseException:
        snapshot.close()
        raise

    def close() -> None:
        answer.close()
        snapshot.close()

    return Result(answer.columns, answer, close=close)


def _answer(context: SessionContext, statement: Select, definitions: Definitions, snapshot: TableSnapshot) -> Answer:
    """From the checked tree, if that is reliable; otherwise, or if that fails, from the user's own text."""
    words = statement.words
    if words is not None and not (words.is_read and is_trusted(words.text, to_sql(statement.query))):
        return _in_own_words(context, statement, definitions, snapshot)
    try:
        checked = check(
            statement.query,
            SystemNames(definitions),
            statement.source,
            words=words,
            allow_volatile=True,
        )
        return context.answer(checked.tree, result_columns(checked.columns), definitions, snapshot)
    except UnknownObjectError:
        raise
    except EverviewError as refused:
        if words is None:
            raise
        try:
            return _in_own_words(context, statement, definitions, snapshot)
        except EverviewError:
            raise refused from None


def _in_own_words(
    context: SessionContext, statement: Select, definitions: Definitions, snapshot: TableSnapshot
) -> Answer:
    assert statement.words is not None
    words, start = statement.words.text, statement.words.start
    query = worded(words, SystemNames(definitions), statement.source, start, allow_volatile=True)
    return context.answer_in_words(query, definitions, snapshot)
