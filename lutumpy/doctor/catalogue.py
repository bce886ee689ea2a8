"""The doctor's tables: what mends a breach of each rule, when, and what is left and why."""

# Each API has one table, in the module that `apis.py` names for its repairs (`stages.py` of its
# folder here). A row is under the same id as in the API's table of rules, which says what the
# rule requires and how sure a refusal is. Nothing about a rule is anywhere else.
#
# Repairs are made in stages, because one repair can hide or uncover another problem: ids are mended
# before calls and results are paired by them. A pass mends one stage; the next pass checks the
# messages again and begins with the first stage.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lutumpy.apis import Api, serves, serving
from lutumpy.doctor.editor import Ties
from lutumpy.doctor.mending import Mender, Stage, mend_each
from lutumpy.doctor.repair import RepairKind
from lutumpy.doctor.spelling import Spelling
from lutumpy.rules.catalogue import Rule

__all__ = [
    "KINDS",
    "Mending",
    "Repairs",
    "Row",
    "StageRow",
    "Step",
    "all_at_once",
    "for_any_certainty",
    "one_by_one",
    "repairs_of",
    "rows_of",
    "stages_of",
]

KINDS: Mapping[RepairKind, str] = {
    "close_call": "A call without a result gets one that says it was interrupted, "
    "in its place among the others.",
    "drop_call": "A call that nobody can answer or read is left out.",
    "drop_result": "A result without a call, or a second one, is left out.",
    "move_result": "A result is moved to where the API requires it.",
    "move_call": "Calls that their message can't hold go into an assistant message after it.",
    "move_message": "A message is moved to where the API takes it, "
    "or out of a list inside the list.",
    "convert_message": "Calls and results in another API's spelling are written as this API does.",
    "match_result": "A result without an id gets the id of the call in its place.",
    "rename_id": "An id that is used twice is changed, in the call and in its result alike.",
    "replace_id": "An id that the API refuses is shortened or replaced, "
    "in the call and in its result alike.",
    "drop_id": "The id of an item that needs none is left out.",
    "rename_tool": "A tool name that the API refuses is replaced, at every call the same way.",
    "wrap_arguments": "Arguments are put into a form that the API takes; "
    "what can't be read is kept as text inside it.",
    "drop_reasoning": "Reasoning that has lost what it belongs to is left out.",
    "drop_empty": "Something empty is left out.",
    "drop_duplicate": "Something that stands in the history twice is left out once.",
    "drop_reference": "A reference that names nothing is left out.",
    "drop_key": "A key that the API doesn't know is left out.",
    "set_role": "A message gets the role that its content shows, or the API's name for its role.",
    "set_content": "Content is put into a form that the API takes.",
    "set_field": "A field is set to the value that the rest of the object shows.",
    "move_content": "Content in the wrong place is moved: "
    "out of a result, before the calls, reasoning to the start.",
    "replace_characters": "Half characters and values that JSON doesn't know are replaced.",
}
"""What each kind of repair does."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage does about a rule.

    Attributes:
        stage: The name of the stage.
        mend: Mends one problem after another.
        mend_all: Mends all problems of the stage together, whichever of its rules they break.
        any_certainty: It mends problems however sure a refusal is.
    """

    stage: str
    mend: Mender | None = None
    mend_all: Stage | None = None
    any_certainty: bool = False


def one_by_one(stage: str, mend: Mender) -> Step:
    """A step that mends one problem after another."""
    return Step(stage, mend=mend)


def all_at_once(stage: str, mend_all: Stage) -> Step:
    """A step that sees all problems of its stage together, as pairing must."""
    return Step(stage, mend_all=mend_all)


def for_any_certainty(stage: str, mend_all: Stage) -> Step:
    """A step for what no host of the API can read, whether or not a refusal is sure."""
    return Step(stage, mend_all=mend_all, any_certainty=True)


class Mending:
    """What the doctor does about a rule.

    Attributes:
        steps: The steps, each in its stage; none for a rule whose breaches are left.
        repairs: The kinds of repairs that they propose.
        left: Which breaches get no repair, and why; empty when all that are sure to be refused do.
        although_unsure: A breach is mended although a refusal isn't sure: it is a mistake beyond
            doubt, and the repair loses nothing.
    """

    __slots__ = ("although_unsure", "left", "repairs", "steps")

    def __init__(
        self,
        *steps: Step,
        repairs: tuple[RepairKind, ...] = (),
        left: str = "",
        although_unsure: bool = False,
    ) -> None:
        self.steps: tuple[Step, ...] = steps
        self.repairs: tuple[RepairKind, ...] = repairs
        self.left: str = left
        self.although_unsure: bool = although_unsure


@dataclass(frozen=True, slots=True)
class Row:
    """A rule with what the doctor does about it."""

    rule: Rule
    mending: Mending


def rows_of(rules: Mapping[str, Rule], mendings: Mapping[str, Mending]) -> Mapping[str, Row]:
    """The rules of an API, in their order, each with what is done about it.

    Raises:
        ValueError: a rule has no row, or a row no rule.
    """
    if rules.keys() != mendings.keys():
        odd = sorted(rules.keys() ^ mendings.keys())
        raise ValueError(f"these rules stand in one of the two tables only: {', '.join(odd)}")
    return {rule: Row(rules[rule], mendings[rule]) for rule in rules}


class StageRow(NamedTuple):
    """One stage: the rules whose breaches it mends, and how.

    Attributes:
        rules: The rules' ids.
        mend: Mends what it can of the problems.
        any_certainty: It gets all problems with these rules, however sure a refusal is.
    """

    rules: frozenset[str]
    mend: Stage
    any_certainty: bool = False


def stages_of(order: Sequence[str], mendings: Mapping[str, Mending]) -> tuple[StageRow, ...]:
    """The stages of an API, first to last.

    Args:
        order: The names of the stages.
        mendings: The API's table.

    Raises:
        ValueError: a step names a stage that isn't in the order, or the steps of a stage disagree
            on whether it mends problems one by one or all at once.
    """
    # A dict keeps the order of the names; stages without a rule would be caught by the tests.
    by_stage: dict[str, dict[str, Step]] = {name: {} for name in order}
    for rule, mending in mendings.items():
        for step in mending.steps:
            if step.stage not in by_stage:
                raise ValueError(f"{rule} is mended in a stage {step.stage!r} without a place")
            by_stage[step.stage][rule] = step
    return tuple([_stage_row(name, steps) for name, steps in by_stage.items()])


def _stage_row(name: str, steps: Mapping[str, Step]) -> StageRow:
    menders: dict[str, Mender] = {}
    together: list[Step] = []
    for rule, step in steps.items():
        if step.mend is not None:
            menders[rule] = step.mend
        else:
            together.append(step)
    if not together:
        return StageRow(frozenset(steps), mend_each(menders))
    mend_all = together[0].mend_all
    if menders or mend_all is None or any(step.mend_all is not mend_all for step in together):
        raise ValueError(f"the steps of the stage {name!r} don't mend it in one way")
    return StageRow(frozenset(steps), mend_all, together[0].any_certainty)


@dataclass(frozen=True, slots=True)
class Repairs:
    """What the doctor has for an API: read from the module that `apis.py` names for its repairs.

    All of it may be missing: then the API's histories are checked, and nothing is mended. A module
    defines these by the same names in capitals.

    Attributes:
        stages: What is mended first, and so on. In the module each may be a pair of the rules' ids
            and the function.
        rows: The table of rules, for docs, and for rules that are mended although a refusal isn't
            sure; without it only sure ones are mended.
        spelling: How the API writes what others write too; without it nothing is converted into or
            from it.
        ties: What goes with an entry that a repair takes away; without it nothing does.
    """

    stages: tuple[StageRow, ...] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    spelling: Spelling | None = None
    ties: type[Ties] | None = None


def repairs_of(api: Api) -> Repairs:
    """What the doctor has for an API.

    Raises:
        UnknownApiError: there is no such API.
    """
    if not serves(api, "repairs"):
        return Repairs()
    module = serving(api, "repairs")
    return Repairs(
        stages=tuple([StageRow(*stage) for stage in getattr(module, "STAGES", ())]),
        rows=getattr(module, "ROWS", {}),
        spelling=getattr(module, "SPELLING", None),
        ties=getattr(module, "TIES", None),
    )
