"""`UNSET` takes a parameter out of a request: of every API, in adapters, turns and own requests."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from lutumpy import UNSET, Session, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.apis import api_names, serving
from lutumpy.models import OutputSpec, TurnOptions

OUTPUT = OutputSpec("answer", {"type": "object", "properties": {}, "additionalProperties": False})


@tool_fn
def look(where: str) -> str:
    """Look somewhere."""
    return where


class Tools(Toolset):
    """One tool."""

    look = tool(look)


def talk() -> Any:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("hi")
    return session.transcript


@pytest.mark.parametrize("api", api_names())
def test_each_parameter_of_a_request_can_be_taken_away_OR6(api: str) -> None:
    adapter = serving(api, "adapter")
    options = {"temperature": 0.5, "max_output_tokens": 9, "output": OUTPUT, "stream": True}
    if api == "ollama_chat":
        del options["output"]  # its rules refuse a format beside tools
    whole = adapter.request(talk(), Tools.offer(), **options)
    assert len(whole) > 2
    for name in whole:
        found = adapter.request(talk(), Tools.offer(), extra={name: UNSET}, **options)
        assert found == {key: value for key, value in whole.items() if key != name}
        if name not in options:
            beside = {**options, name: UNSET}
            assert adapter.request(talk(), Tools.offer(), **beside) == found


@pytest.mark.parametrize(
    ("api", "parameter", "inner"),
    [
        ("gemini_generate_content", "generationConfig", "maxOutputTokens"),
        ("bedrock_converse", "inferenceConfig", "maxTokens"),
        ("ollama_chat", "options", "num_predict"),
    ],
)
def test_a_field_of_a_parameter_can_be_taken_away_OR6(api: str, parameter: str, inner: str) -> None:
    request = serving(api, "adapter").request
    options = {"temperature": 0.5, "max_output_tokens": 9}
    whole = request(talk(), **options)[parameter]
    found = request(talk(), extra={parameter: {inner: UNSET}}, **options)[parameter]
    assert inner in whole
    assert found == {name: value for name, value in whole.items() if name != inner}


def test_a_turn_takes_away_a_default_and_brings_it_back_OR6() -> None:
    llm = OpenAIChat("m", api_key="k", extra={"seed": 1, "stream_options": UNSET})

    def sent(**extra: Any) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(
            # What goes out, without a host.
            llm._body(talk(), None, TurnOptions(extra=extra), stream=True)
        )
        return body

    assert {"seed", "stream_options"} & set(sent()) == {"seed"}
    assert "seed" not in sent(seed=UNSET)
    assert sent(stream_options={"include_usage": False})["stream_options"] == {
        "include_usage": False
    }
    assert sent(metadata={"a": "b", "c": UNSET, "d": None})["metadata"] == {"a": "b", "d": None}


def test_a_typed_turn_goes_without_its_schema_where_that_is_taken_away_OR6() -> None:
    for adapter, name in ((OpenAIChat, "response_format"), (OpenAIResponses, "text")):
        assert name in adapter.request(talk(), output=OUTPUT)
        assert name not in adapter.request(talk(), output=OUTPUT, extra={name: UNSET})


def test_the_value_stays_itself() -> None:
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET
    assert repr(UNSET) == "UNSET"
    assert not UNSET
