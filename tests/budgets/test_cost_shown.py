"""What a conversation has cost is said in the terminal, in records and on the page."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lutumpy import Session, Usage
from lutumpy.budget import Price, Prices, cost_of
from lutumpy.cli.app import app
from lutumpy.errors import UnknownPriceError
from lutumpy.page import render
from lutumpy.testing import Reply, ScriptedModel

OWN = Prices.table({"m": Price(Decimal(1), Decimal(10))})


def talked(model: str) -> Session:
    session = Session()
    session.push_user("How far is the Moon?")
    llm = ScriptedModel([Reply(text="384,400 km.", usage=(1000, 100))], model=model)
    session.text_turn(llm).collect_sync()
    return session


def show(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["show", *arguments])


def test_a_session_costs_its_answers_and_what_failed_and_a_transcript_its_answers() -> None:
    session = talked("m")
    assert cost_of(session, OWN) == Decimal("0.002")
    session.add_usage(Usage(500, 0, 500))
    assert cost_of(session, OWN) == Decimal("0.0025")
    assert cost_of(session.transcript, OWN) == Decimal("0.002")
    assert cost_of(talked("gpt-4.1-mini")) == Decimal("0.00056")
    assert cost_of(Session(), OWN, model="m") == 0
    with pytest.raises(UnknownPriceError):
        cost_of(talked("other"), OWN)


@pytest.mark.pure
@pytest.mark.slow
def test_show_says_it_for_sessions_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, unknown = tmp_path / "known.json", tmp_path / "unknown.json"
    known.write_text(json.dumps(talked("gpt-4.1-mini").dump()))
    unknown.write_text(json.dumps(talked("m").dump()))
    assert "cost  0.00056 dollars" in show("--cost", str(known)).output
    assert "cost" not in show(str(known)).output
    assert "cost  not known" in show("--cost", str(unknown)).output
    records = [
        json.loads(line) for line in show("--cost", "--json", str(known)).output.split("\n") if line
    ]
    assert [each["cost_usd"] for each in records if "cost_usd" in each] == ["0.00056"]
    exchange = tmp_path / "exchange.json"
    body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "hi"}]}
    message = {"role": "assistant", "content": "hello"}
    answer: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "model": "gpt-4.1-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }
    exchange.write_text(json.dumps({"request": body, "response": answer}))
    assert "cost  0.00056 dollars" in show("--cost", str(exchange)).output
    exchange.write_text(json.dumps(body))
    assert "cost  not known" in show("--cost", str(exchange)).output
    page = tmp_path / "page.html"
    assert show("--cost", "--html", str(page), str(known)).exit_code == 0
    assert "0.00056" in page.read_text()
    assert show("--cost", "--html", str(page), str(unknown)).exit_code == 0
    assert "dollars" not in page.read_text()
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    refused = show("--cost", str(known))
    assert refused.exit_code == 2


def test_the_page_says_it_in_its_heading() -> None:
    session = talked("m")
    assert "dollars" not in render(session)
    assert "0.002" in render(session, prices=OWN)
    assert "0.002" in render(session.transcript, prices=OWN)
    messages = [{"role": "user", "content": "hi"}]
    assert "dollars" not in render(messages, api="openai_chat", prices=OWN)
