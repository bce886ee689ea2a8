"""A request for several answers is refused: a turn is one, and the others would be lost."""

from __future__ import annotations

from typing import Any

import pytest
from every_api import ADAPTERS

from lutumpy import Session, Transcript
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.errors import AdapterError

ASKED = Transcript()
ASKED.push_user("Go.")
SEVERAL: list[tuple[str, dict[str, Any]]] = [
    ("openai_chat", {"n": 2}),
    ("gemini_generate_content", {"generationConfig": {"candidateCount": 3}}),
    ("gemini_generate_content", {"generation_config": {"candidate_count": 3}}),
]
ONE: list[tuple[str, dict[str, Any]]] = [
    ("openai_chat", {"n": 1}),
    ("openai_chat", {"n": None}),
    ("openai_chat", {"n": "2"}),  # the provider's to refuse
    ("gemini_generate_content", {"generationConfig": {"candidateCount": 1}}),
    ("gemini_generate_content", {"generationConfig": None}),
]


@pytest.mark.parametrize(("api", "extra"), SEVERAL)
def test_several_answers_are_refused_by_name(api: str, extra: dict[str, Any]) -> None:
    for given in (extra, {"extra": extra}):
        with pytest.raises(AdapterError, match="asks for several answers") as raised:
            ADAPTERS[api].request(ASKED, **given)
        assert raised.value.sent is False


@pytest.mark.parametrize(("api", "extra"), ONE)
def test_one_answer_may_be_asked_for(api: str, extra: dict[str, Any]) -> None:
    body = ADAPTERS[api].request(ASKED, extra=extra)
    assert {name: body[name] for name in extra if extra[name] is not None} == {
        name: value for name, value in extra.items() if value is not None
    }


@pytest.mark.parametrize("model", [OpenAIChat, Gemini])
def test_a_model_sends_nothing_of_it(model: Any) -> None:
    extra = {"n": 2} if model is OpenAIChat else {"generationConfig": {"candidateCount": 2}}
    session = Session()
    session.push_user("Go.")
    before = session.dump()
    with pytest.raises(AdapterError, match="nothing was sent"):
        session.text_turn(model("m", api_key="k", extra=extra)).collect_sync()
    assert session.dump() == before
