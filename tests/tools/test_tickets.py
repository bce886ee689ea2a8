"""A ticket as JSON and back; what is none is refused by name (rule P18)."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from pydantic import field_serializer, field_validator

from lutumpy import (
    CallTicket,
    ImagePart,
    PlanError,
    Signer,
    TextPart,
    ToolInput,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.models import ToolMetadata
from lutumpy.tools import NotPortable, load_input
from lutumpy.tools.portable_input import dump_value

TICKET = CallTicket(
    "s", "c1", "pay", '{"n":1}', {"n": 1}, "key", "once", math.inf, 2, "sha256:x", "00", 1, "eq"
)


def test_a_ticket_comes_back_and_a_missing_limit_is_null() -> None:
    data = TICKET.dump()
    assert data["timeout"] is None
    assert CallTicket.load(json.loads(json.dumps(data))) == TICKET
    assert CallTicket.load({**data, "later": 1}) == TICKET
    assert TICKET.metadata == ToolMetadata("c1", "pay", '{"n":1}')


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scope": 7}, "scope of the ticket is int"),
        ({"max_retries": True}, "max_retries of the ticket is bool"),
        ({"effect": "twice"}, "the effect of the ticket is 'twice'"),
        ({"occurrence": -1}, "the occurrence of the ticket is -1"),
        ({"key": None}, "key of the ticket is NoneType"),
    ],
)
def test_what_is_no_ticket_is_refused(change: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CallTicket.load({**TICKET.dump(), **change})


def test_a_signed_ticket_is_the_one_that_the_holder_of_the_key_wrote_LR14() -> None:
    signer, keys = Signer("k1", b"one"), {"k1": b"one", "k2": b"two"}
    data = TICKET.dump(sign=signer)
    again = json.loads(json.dumps(data, sort_keys=True, indent=1))
    assert CallTicket.load(again, verify=keys) == CallTicket.load(again) == TICKET
    assert data.keys() - TICKET.dump().keys() == {"digest", "signature"}
    for name in TICKET.dump():
        changed = {**data, name: "other"}
        with pytest.raises(PlanError, match="the ticket is not the one that the key 'k1'") as seen:
            CallTicket.load(changed, verify=keys)
        assert seen.value.kind == "tampered"
        with pytest.raises(PlanError, match="the ticket was changed after it was written"):
            CallTicket.load(changed)
    # Somebody who has no key can make the digest, and nothing else.
    forged = replace(TICKET, call_id="c2").dump(sign=Signer("k1", b"guessed"))
    assert CallTicket.load(forged).call_id == "c2"
    refused: list[tuple[Any, Any, str]] = [
        (forged, keys, "tampered"),
        (TICKET.dump(), keys, "unsigned"),
        (TICKET.dump(sign=Signer("k3", b"one")), keys, "unsigned"),
        (data, {}, "unsigned"),
        ({**data, "signature": {**data["signature"], "more": 1}}, keys, "tampered"),
        ({**data, "later": math.nan}, keys, "format"),
    ]
    for ticket, known, kind in refused:
        with pytest.raises(PlanError, match="ticket") as seen:
            CallTicket.load(ticket, verify=known)
        assert seen.value.kind == kind
    with pytest.raises(TypeError, match="sign= takes a Signer, not str"):
        TICKET.dump(sign="k1")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["scope", "input", "tool_digest"])
def test_a_ticket_without_a_field_is_refused(name: str) -> None:
    data = {key: value for key, value in TICKET.dump().items() if key != name}
    with pytest.raises(ValueError, match=f"the ticket has no {name}"):
        CallTicket.load(data)
    with pytest.raises(ValueError, match="a ticket is a JSON object"):
        CallTicket.load([])  # type: ignore[arg-type]


@tool_input(name="restless")
class Restless(ToolInput[str]):
    """Written otherwise each time."""

    n: int

    @field_serializer("n", when_used="json")
    def write(self, value: int) -> Any:
        Counted.count += 1
        return float(value) if Counted.count % 2 else value


class Counted:
    count = 0


@tool_input(name="raising")
class Raising(ToolInput[str]):
    """Its validator raises something that is no error of validation."""

    n: int

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        if value > 1:
            raise RuntimeError
        return value


class Odd:
    """Equal to nothing, and doesn't like to be asked."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@tool_fn(effect="read")
def draw(name: str) -> ImagePart | int:
    """Draw."""
    return 1


class Tools(Toolset):
    restless = tool(Restless)
    raising = tool(Raising)
    draw = tool(draw)


def test_an_input_that_is_written_otherwise_the_second_time_is_refused_P12() -> None:
    with pytest.raises(NotPortable, match="otherwise the second time"):
        dump_value(Tools.restless.tool, Restless(n=1))


def test_a_validator_that_raises_anything_is_no_crash() -> None:
    with pytest.raises(NotPortable, match="can't be read"):
        load_input(Tools.raising.tool, {"n": 2})


def test_parts_that_no_output_has_are_left_out() -> None:
    call = Tools.parse(ToolMetadata("c1", "draw", '{"name":"x"}'))
    dumped = ToolResult(call.metadata, (TextPart("a"), TextPart("b")), output_error="odd").dump()
    assert dumped["output_error"] == "odd"
    assert ToolResult.load(dumped, call).output is None
