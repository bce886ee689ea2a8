"""Copies of inputs: hooks work on copies, so that nothing they do has to be taken back."""

# A hook may change the input that it is given, and the change is what runs, if all hooks have
# decided. If one of them raises, or a signal interrupts the run, every input has to be as it was.
# Taking changes back can be interrupted too, and then a round is left with the inputs of nobody's
# decision. So nothing is ever taken back: the calls of a round keep their inputs, hooks are shown
# copies, and a call whose copy was changed is replaced by one that holds the copy.
#
# A copy has to be cheap, for every call that has a hook pays for one. Most inputs are flat: none of
# their values can be changed, but for lists of such values. A new model with the same values, and
# with lists of its own, is a copy then. It is made in one loop over all calls, without entering a
# function for each (`tests/rounds/test_round_cost.py`), in a fraction of the time of pydantic's own
# deep copy, which serves all others. And since a copy shares what can't be changed, a comparison
# with the original mostly asks whether two values are the very same object.

from __future__ import annotations

from collections.abc import Container, Sequence
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import repeat
from operator import is_
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.arguments import Decoded, decode_call_again
from lutumpy.tools.calls import BaseToolCall

C = TypeVar("C", bound=BaseToolCall)

__all__ = ["NOT_COPIED", "changed_call", "copy_input", "copy_inputs", "replace_changed"]

NOT_COPIED: Any = object()
"""In place of the copy, for a call that no hook looks at."""

# Values that nobody can change are shared.
_UNCHANGEABLE = frozenset(
    {bool, bytes, complex, float, int, str, type(None)}
    | {UUID, Decimal, date, datetime, time, timedelta}
)
# The slots of a model, past what its class says of assignments. `model_construct` is pydantic's way
# to them, and asks about every field.
_SLOTS: Any = BaseModel
_set_fields: Any = _SLOTS.__dict__["__dict__"].__set__
_set_names: Any = _SLOTS.__pydantic_fields_set__.__set__
_set_extra: Any = _SLOTS.__pydantic_extra__.__set__
_set_private: Any = _SLOTS.__pydantic_private__.__set__


def copy_inputs(
    states: Sequence[object], hooked: Container[str] | None, *, as_decoded: bool
) -> list[Any]:
    """The inputs for the hooks to look at, and to change: one for each call of an answer.

    Args:
        states: Every call of the answer, pending or not; nothing of it is changed.
        hooked: The names of the tools that have hooks; `None` for all. Inputs of other tools aren't
            copied.
        as_decoded: No hook has changed the inputs yet, so that what can't be copied of them can be
            decoded again.
    """
    copies: list[Any] = []
    for call in states:
        if (
            not isinstance(call, BaseToolCall)  # decided, held or an issue
            or type(call) is ApprovalRequest  # hooks get these made anew
            or (hooked is not None and call.metadata.name not in hooked)
        ):
            copies.append(NOT_COPIED)
            continue
        value = call.input
        if isinstance(value, str):
            copies.append(value)
            continue
        fields = value.__dict__.copy()
        lists: list[list[Any]] = []
        is_flat = value.__pydantic_extra__ is None and value.__pydantic_private__ is None
        for name, field in fields.items():
            if type(field) in _UNCHANGEABLE:
                continue
            if type(field) is not list or not _UNCHANGEABLE.issuperset(map(type, field)):
                is_flat = False
                break
            if lists and any(map(is_, lists, repeat(field))):
                is_flat = False  # two fields share it, and so do the copy's
                break
            lists.append(field)
            fields[name] = field.copy()
        if is_flat:
            # As `copy_input`, for a flat input.
            copy = object.__new__(type(value))
            _set_fields(copy, fields)
            _set_names(copy, value.__pydantic_fields_set__.copy())
            _set_extra(copy, None)
            _set_private(copy, None)
            copies.append(copy)
        else:
            copies.append(copy_input(value, call if as_decoded else None))
    return copies


def changed_call(call: C, copy: Any) -> C:
    """The call, if the copy of its input is as it was; else the same call with that copy."""
    return call if _are_same(call.input, copy) else call.holding(copy)


def replace_changed(states: Sequence[Any], decided: list[Any], copies: Sequence[Any]) -> None:
    """Put the copy in place of the input into each call whose copy the hooks have changed.

    Args:
        states: Every call of the answer before the hooks.
        decided: The same after them; changed calls are replaced here.
        copies: What `copy_inputs` gave for them.
    """
    for index, copy in enumerate(copies):
        call = states[index]
        if copy is NOT_COPIED or decided[index] is not call or copy is call.input:
            continue  # not looked at, decided, or a text
        # As `changed_call`, without entering it for each call: a flat input that no hook has
        # changed has the very same values, and lists of the very same ones.
        fields, theirs = call.input.__dict__, copy.__dict__
        is_same = (
            call.input.__pydantic_extra__ is None
            and call.input.__pydantic_private__ is None
            and call.input.__pydantic_fields_set__ == copy.__pydantic_fields_set__
            and len(fields) == len(theirs)
        )
        for name in fields if is_same else ():
            value, other = fields[name], theirs.get(name, NOT_COPIED)
            if value is not other and (
                type(value) is not list
                or type(other) is not list
                or len(value) != len(other)
                or not all(map(is_, value, other))
            ):
                is_same = False
                break
        if not is_same:
            decided[index] = changed_call(call, copy)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two values are the same in all that can be changed; `False` where nobody knows."""
    if type(one) is not type(other):
        return False
    if one is other:
        return True
    if type(one) in _UNCHANGEABLE:
        # Equal values may be different ones: a time in another zone, 7 and 7.00, 0.0 and -0.0.
        return bool(one == other) and repr(one) == repr(other)
    if type(one) is list:
        if len(one) != len(other):
            return False
        pairs = zip(one, other, strict=True)
    elif type(one) is dict:
        if list(one) != list(other):
            return False
        pairs = zip(one.values(), other.values(), strict=True)
    elif isinstance(one, BaseModel):
        return (
            one.__pydantic_fields_set__ == other.__pydantic_fields_set__
            and _are_same(one.__dict__, other.__dict__)
            and _are_same(one.__pydantic_extra__, other.__pydantic_extra__)
            and _are_same(one.__pydantic_private__, other.__pydantic_private__)
        )
    else:
        return False
    # A loop: a generator would be entered for every value.
    for mine, theirs in pairs:  # noqa: SIM110
        if mine is not theirs and not _are_same(mine, theirs):
            return False
    return True


def copy_input(value: Any, decoded: BaseToolCall | None = None) -> Any:
    """A copy of an input that nobody else holds, so that it never changes afterwards.

    Args:
        value: The input: a model, or a text.
        decoded: The call that has it, where no hook has changed it yet. Fields that can't be copied
            are decoded again then; without it the copy shares them, so that no edit of an earlier
            hook is lost.
    """
    if isinstance(value, str):
        return value
    try:
        return value.model_copy(deep=True)
    except Exception:
        pass  # something inside can't be copied: a lock, a connection
    base = value
    if decoded is not None:
        again = decode_call_again(decoded.tool, decoded.metadata)
        base = again.input if isinstance(again, Decoded) else value
    fields = {
        name: _copy_or_take(field, getattr(base, name, field))
        for name, field in value.__dict__.items()
    }
    return base.model_copy(update=fields)


def _copy_or_take(value: Any, instead: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:
        return instead
