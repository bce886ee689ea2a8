"""`FoundTool`: a tool that a search has found, as a part of the search's result."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lutumpy import FoundTool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def test_it_holds_a_copy_of_the_schema() -> None:
    given: dict[str, Any] = {"type": "object", "properties": {}}
    found = FoundTool("look", "Look.", given, strict=True)
    given["properties"]["x"] = {}
    found.schema["properties"]["y"] = {}
    assert found.schema == {"type": "object", "properties": {}}
    assert found == FoundTool("look", "Look.", {"type": "object", "properties": {}}, True)
    assert found != FoundTool("look", "Look.", {"type": "object", "properties": {}})


def test_its_text_is_the_name_and_what_is_said_of_the_tool() -> None:
    assert FoundTool("look", "Look at it.", SCHEMA).text == "look: Look at it."
    assert FoundTool("look", " ", SCHEMA).text == "look"


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        ((3, "", SCHEMA), TypeError, "the name and the description of a tool as texts"),
        (("look", None, SCHEMA), TypeError, "the name and the description of a tool as texts"),
        ((" ", "", SCHEMA), ValueError, "the name of a tool, not an empty text"),
        (("look", "", [SCHEMA]), TypeError, "the schema of a FoundTool is an object, not list"),
        (("look", "", SCHEMA, "yes"), TypeError, "strict= takes True, False or None, not 'yes'"),
        (("look", "", {"x": b""}), TypeError, r"'look'\.x is bytes, which is not JSON"),
        (("look", "", {"x": math.nan}), ValueError, r"'look'\.x is nan, which JSON has not"),
    ],
)
def test_what_is_no_tool_is_refused_at_once(given: Any, error: Any, why: str) -> None:
    with pytest.raises(error, match=why):
        FoundTool(*given)
