"""Formats of calls as a real server streams them. See `test_adapters_live` for when these run.

The small model writes no calls by itself. A grammar of llama.cpp holds it to a format, so what is
read is cut into the server's own pieces.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lutumpy import NeedsTools, Session, ToolCallReady, Toolset, tool, tool_fn
from lutumpy.local import LocalServer, fetch, serve
from lutumpy.text_tools import TagToolParser, TextTools, recognize_format

pytestmark = pytest.mark.skipif(
    os.environ.get("LUTUMPY_NEED_LOCAL") != "1", reason="LUTUMPY_NEED_LOCAL is not set"
)

NUMBER = "[1-9] [0-9]?"
GRAMMARS = {
    "hermes": 'root ::= "<tool_call>\\n{\\"name\\": \\"add\\", \\"arguments\\": {\\"a\\": " n '
    '", \\"b\\": " n "}}\\n</tool_call>"',
    "qwen3_coder": 'root ::= "<tool_call>\\n<function=add>\\n<parameter=a>\\n" n '
    '"\\n</parameter>\\n<parameter=b>\\n" n "\\n</parameter>\\n</function>\\n</tool_call>"',
    "pythonic": 'root ::= "[add(a=" n ", b=" n ")]"',
}


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


class Sums(Toolset):
    add = tool(add)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Any GGUF file, by its path: here the known one under another name."""
    file = tmp_path_factory.mktemp("models") / "a-model-of-mine.gguf"
    Path(file).symlink_to(fetch())
    with serve(file, threads=1, context_tokens=2048) as running:
        yield running


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_format_is_read_from_a_real_answer_and_stream_S1(server: LocalServer, name: str) -> None:
    grammar = f"{GRAMMARS[name]}\nn ::= {NUMBER}"
    chat = server.chat(temperature=0, max_output_tokens=100, extra={"grammar": grammar, "seed": 1})
    llm = TextTools(chat, parser=TagToolParser.named(name))
    session = Session()
    session.push_user("What is 7 plus 5?")
    whole = session.text_turn(llm, tools=Sums).collect_sync()
    assert isinstance(whole, NeedsTools)
    assert whole.round.issues == ()
    assert whole.round.text.strip() == ""
    assert len(whole.round.calls) == 1
    whole.round.discard()
    with session.text_turn(llm, tools=Sums).stream_sync() as stream:
        ready = [one.call.metadata.arguments for one in stream if isinstance(one, ToolCallReady)]
    assert isinstance(stream.outcome, NeedsTools)
    assert ready == [call.metadata.arguments for call in stream.outcome.round.calls]
    assert len(ready) == 1
    results = [call.complete(call.call_sync()) for call in stream.outcome.round.calls]
    stream.outcome.round.commit(session, results)
    # What the template gives: the results as that format writes them.
    assert session.text_turn(server.chat(max_output_tokens=5)).collect_sync().text


def test_the_server_tells_the_template_of_its_model(server: LocalServer) -> None:
    assert server.model == "a-model-of-mine"
    assert "<|im_start|>" in server.chat_template
    # This model has no way of its own to call tools, so its template tells none.
    assert recognize_format("", server.chat_template) is None
    with pytest.raises(ValueError, match="knows no format"):
        TextTools(server.chat(), parser="auto", template=server.chat_template)
