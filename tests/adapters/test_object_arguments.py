"""APIs that have the arguments of a call as an object: what else may be in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_api import ADAPTERS, APIS

from lutumpy.testing import Call, Reply, render

PROBE = {"probe": 1}


def replaced(value: Any, instead: Any) -> Any:
    """`value` with another one in place of the probe, wherever that is."""
    if value == PROBE:
        return instead
    if isinstance(value, dict):
        return {key: replaced(inner, instead) for key, inner in value.items()}
    return [replaced(inner, instead) for inner in value] if isinstance(value, list) else value


def reply_with(api: str, arguments: Any) -> dict[str, Any]:
    rendered = render(Reply(calls=[Call("look", PROBE, id="call_1")]), api, number=1, model="m")
    found: dict[str, Any] = replaced(rendered, arguments)
    return found


def read(api: str, arguments: Any) -> tuple[str, Any]:
    """The arguments of a call, and the whole of what goes back of the answer."""
    turn = ADAPTERS[api].response(reply_with(api, arguments))
    (call,) = turn.calls
    return call.arguments, json.loads(turn.native)


OBJECTS = [api for api in APIS if reply_with(api, {}) != reply_with(api, PROBE)]


def test_four_apis_have_an_object() -> None:
    assert len(OBJECTS) == 4


@pytest.mark.parametrize("api", OBJECTS)
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_is_no_arguments_C4_R3(api: str, blank: str) -> None:
    arguments, native = read(api, blank)
    assert arguments == ""
    assert native == read(api, {})[1]


@pytest.mark.parametrize("api", OBJECTS)
@pytest.mark.parametrize("value", [[1], 3, True, "no JSON"])
def test_what_is_no_object_goes_back_inside_one_R3(api: str, value: Any) -> None:
    arguments, native = read(api, value)
    assert json.dumps({"INVALID_JSON": arguments})[1:-1] in json.dumps(native)


@pytest.mark.parametrize("api", OBJECTS)
def test_a_number_that_is_none_goes_back_as_a_text_and_is_not_run_C2_R3(api: str) -> None:
    turn = ADAPTERS[api].response(reply_with(api, {"limit": float("nan")}))
    assert turn.calls[0].problem is not None
    assert '"limit":"NaN"' in turn.native.decode()
