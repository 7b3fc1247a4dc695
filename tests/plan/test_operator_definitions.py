"""The definitions of operators: one for each worker, with a recorded form, an identity, and things that views add."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from dataclasses import replace

import pytest

from everview.change.types import BIGINT
from everview.errors import DefinitionError
from everview.operators.stages import WORKERS
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    AnyOperator,
    DeltaOperator,
    DistinctOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    IndexOperator,
    JoinOperator,
    PartitionOperator,
    PreAggregationOperator,
    ReevaluationOperator,
    ReverseJoinOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    UnnestOperator,
    ViewOperator,
    WindowOperator,
)
from everview.plan.maintenance.operator_parts import (
    AccumulatedColumn,
    AssembledCall,
    BagOrder,
    ComputedColumn,
    EndColumn,
    EvaluatedCall,
    MatchedKey,
    PartColumn,
    QueryColumn,
    QueryInput,
    TableColumn,
)
from everview.plan.maintenance.recorded import decoded, encoded
from everview.plan.relations import JoinKind, SetKind

CALL = EvaluatedCall("t.median(a)", 'MEDIAN("t.a")')
EXAMPLES: tuple[AnyOperator, ...] = (
    DeltaOperator(table="t", key=("t.id",), columns=(TableColumn("t.id", "id"),)),
    RowsOperator(query="VALUES (1)", rounds=7),
    FilterProjectOperator(condition='"t.a" > $1', computed=(ComputedColumn("t.b", '"t.a" + 1'),)),
    ExpandOperator(groups=('"t.a"',), sets=((0,), ()), columns=("t.grouped(a)",), number="t.set"),
    UnnestOperator(items='"t.l"', outer=True, item="t.unnest(l)", position="t.position(l)"),
    UnionOperator(columns=("union.1",), inputs=(('"t.a"',), ('"u.a"',))),
    PreAggregationOperator(
        key=('"t.a"',), key_names=("t.a",), accumulators=(AccumulatedColumn("t.sum(b)", "sum", '"t.b"', None, BIGINT),)
    ),
    ExtremeOperator(key=(), value='"t.a"', filter='"t.b"', ends=(EndColumn("t.max(a)", "max"),)),
    GroupReevaluationOperator(key=(), failing=(), always=((),), calls=(CALL,)),
    AggregateOperator(key=(), calls=(AssembledCall("n", "count", (PartColumn(0, "n"),)),), groups=0, always=((),)),
    ReverseJoinOperator(key=('"t.a"',)),
    PartitionOperator(key=(), order=(BagOrder('"t.a"', True),)),
    JoinOperator(kind=JoinKind.FULL, on=(MatchedKey('"t.a"', '"u.a"', True),), rest=None, right_prefix="2:"),
    DistinctOperator(row=('"t.a"',)),
    SetOperator(kind=SetKind.EXCEPT, all=False, columns=("set.1",), inputs=(('"t.a"',), ('"u.a"',))),
    WindowOperator(partition=(), failing=("f",), calls=(CALL,)),
    TopKOperator(partition=(), limit=None, offset=2, ties=None),
    ReevaluationOperator(
        query="FROM in0", inputs=(QueryInput((QueryColumn("t.a", "a"),), ()),), columns=("evaluated.1",), reason="r"
    ),
    IndexOperator(columns=(ComputedColumn("t.a", '"t.a"'),), key=("t.a",)),
    ViewOperator(columns=(ComputedColumn("t.a", '"t.a"'),), key=()),
)


def test_every_operator_has_one_name_one_worker_and_an_example() -> None:
    kinds = typing.get_args(AnyOperator)
    assert set(kinds) == WORKERS.keys() == {type(example) for example in EXAMPLES}
    assert len({kind.name for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("operator", EXAMPLES, ids=lambda operator: operator.name)
def test_an_operator_survives_being_recorded(operator: Operator) -> None:
    assert decoded(AnyOperator, json.loads(json.dumps(encoded(operator)))) == operator


@pytest.mark.parametrize("operator", EXAMPLES, ids=lambda operator: operator.name)
def test_what_views_add_is_no_part_of_the_identity(operator: AnyOperator) -> None:
    assert operator.with_gained(()) == operator
    beside = {"computed", "accumulators", "ends", "key_names", "item", "position", "reason"}
    assert operator.identity().keys().isdisjoint(beside)


def test_joins_and_partitions_share_the_rows_of_a_key() -> None:
    joined, partition = ReverseJoinOperator(key=("a",)), PartitionOperator(key=("a",))
    assert (joined.meaning, joined.identity()) == (partition.meaning, partition.identity())
    assert partition.identity() != replace(partition, order=()).identity()


def test_an_operator_gains_by_name_and_keeps_its_own() -> None:
    one = FilterProjectOperator(computed=(ComputedColumn("b", "1"),))
    more = one.with_gained([ComputedColumn("a", "2"), ComputedColumn("b", "3")])
    assert more.computed == (ComputedColumn("a", "2"), ComputedColumn("b", "3"))
    assert one.widened(more).computed == (ComputedColumn("a", "2"), ComputedColumn("b", "1"))
    with pytest.raises(DefinitionError, match="filter-project cannot hold a EndColumn"):
        one.with_gained([EndColumn("a", "min")])


@pytest.mark.parametrize(
    "make",
    [
        lambda: RowsOperator(query="VALUES (1)", rounds=-1),
        lambda: ExpandOperator(groups=(), sets=((0,),), columns=(), number="n"),
        lambda: ExpandOperator(groups=("a",), sets=(), columns=(), number="n"),
        lambda: UnionOperator(columns=("a", "b"), inputs=(("1",),)),
        lambda: ExtremeOperator(key=(), value="a", filter=None, ends=(EndColumn("n", "sum"),)),
        lambda: GroupReevaluationOperator(key=("a",), always=((),)),
        lambda: AggregateOperator(key=(), calls=(AssembledCall("n", "count", ()),), groups=0, always=()),
        lambda: JoinOperator(kind=JoinKind.RIGHT, on=(), rest=None, right_prefix=""),
        lambda: TopKOperator(partition=(), limit=-1, offset=0, ties=None),
        lambda: ReevaluationOperator(query="q", inputs=(QueryInput((), ("a",)), QueryInput((), ())), columns=()),
        lambda: SetOperator(kind=SetKind.UNION, all=True, columns=("a",), inputs=(("a",),)),
        lambda: ViewOperator(columns=(), key=("a",)),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(make: Callable[[], Operator]) -> None:
    with pytest.raises(DefinitionError):
        make()
