"""`lutumpy demo --stream`: what arrives is printed as it arrives, and the rest is what it is
without streams.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lutumpy.cli import main
from lutumpy.demo import SCRIPT, provider_names, run
from lutumpy.testing import Call, Reply, serve

every_provider = pytest.mark.parametrize("provider", provider_names())


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The report in parts: (title, lines)."""
    starts = [k for k, line in enumerate(lines) if line.startswith("-- ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start].strip("- "), [line for line in lines[start + 1 : end] if line]


@every_provider
async def test_calls_are_typed_before_the_answer_ends(provider: str) -> None:
    lines: list[str] = []
    result = await run(provider, stream=True, write=lines.append)
    assert result is not None
    assert result.text == SCRIPT[-1].text
    first = dict(sections(lines))["answer 1, as it arrives"]
    assert first[0] == 'text       "Let me l"'
    ready = first.index("ready      call_1  GetOrderInput(order_id=1042)")
    if provider in ("gemini", "ollama"):  # they send calls whole, parallel ones in one chunk
        begun = len(first) - 1
    else:
        begun = first.index("piece      call_2  get_order")
    assert ready < begun
    assert first[-1] == "ready      call_2  GetOrderInput(order_id=1043)"
    second = dict(sections(lines))["answer 2, as it arrives"]
    assert "issue      call_3  invalid_arguments" in second
    assert "           call_3  Tool call rejected: carrier:" not in second
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    assert "\n".join(lines).isascii()


@pytest.mark.sweep
@every_provider
@pytest.mark.parametrize("hooks", [False, True])
async def test_the_rounds_are_those_of_whole_answers(provider: str, hooks: bool) -> None:
    streamed: list[str] = []
    whole: list[str] = []
    await run(provider, stream=True, hooks=hooks, write=streamed.append)
    await run(provider, hooks=hooks, write=whole.append)

    def rounds(lines: list[str]) -> list[tuple[str, list[str]]]:
        return [
            # Messages sends arguments as an object where it sends them whole, so their spaces are
            # not the model's.
            (title, [line.replace('": ', '":').replace(", ", ",") for line in body])
            for title, body in sections(lines)
            if title.startswith(("round", "answer, to"))
        ]

    assert rounds(streamed) == rounds(whole)


@every_provider
async def test_it_says_the_same_every_time(provider: str) -> None:
    first: list[str] = []
    second: list[str] = []
    await run(provider, stream=True, write=first.append)
    await run(provider, stream=True, write=second.append)
    assert first == second


def test_the_command_has_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--stream"]) == 0
    assert "as it arrives" in capsys.readouterr().out
    assert main(["demo"]) == 0
    assert "arrives" not in capsys.readouterr().out


def test_thoughts_and_tools_that_are_not_offered_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = Reply(reasoning="Hm.", calls=[Call("cancel_order", {"order_id": 1042}, id="call_1")])
    with serve([reply, Reply(text="I can't.")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
        assert main(["demo", "--live", "--stream", "--provider", "anthropic"]) == 0
        assert [request.body["stream"] for request in server.requests] == [True, True]
    out = capsys.readouterr().out
    assert 'thought    "Hm."' in out
    assert "piece      call_1  cancel_order (not offered)" in out
    assert "issue      call_1  not_available" in out
