"""`lutumpy demo`: what a new user sees first."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lutumpy import Finished, NeedsTools, Session, __version__
from lutumpy.apis import api_names
from lutumpy.cli import main
from lutumpy.demo import QUESTION, SCRIPT, execute, provider_names, run
from lutumpy.demo.providers import providers
from lutumpy.demo.shop import _HelpDesk
from lutumpy.testing import Call, Reply, ScriptedModel


@pytest.mark.parametrize("provider", provider_names())
async def test_it_tells_what_happened_in_each_round(provider: str) -> None:
    lines: list[str] = []
    result = await run(provider, write=lines.append)
    report = "\n".join(lines)
    assert result is not None
    assert result.text == SCRIPT[-1].text
    assert [line for line in lines if line.startswith("-- round")] != []
    assert "offered    get_order, track_parcel, refund (not offered: cancel_order)" in lines
    assert "decoded    call_1  GetOrderInput(order_id=1042)" in lines
    assert "           call_2  GetOrderInput(order_id=1043)" in lines  # the model wrote a string
    assert (
        "issue      call_3  invalid_arguments: carrier: Input should be 'north' or 'south'"
        in report
    )
    assert "told       call_3  Tool call rejected: carrier:" in report
    assert "executed   call_4  track_parcel: ok" in lines  # beside the invalid call
    assert (
        "decoded    call_5  TrackParcel(carrier='north', number='NP-77')" in lines
    )  # the model corrected itself
    # The server counts what it was sent: no API is sent nothing, or ten times as much as another.
    (tokens,) = re.findall(r"^tokens     (\d+) in, 95 out, in 5 requests$", report, re.MULTILINE)
    assert 2_000 < int(tokens) < 4_000
    assert max(map(len, lines)) <= 100
    assert report.isascii()


@pytest.mark.parametrize("provider", provider_names())
async def test_it_says_the_same_every_time(provider: str) -> None:
    first: list[str] = []
    second: list[str] = []
    await run(provider, write=first.append)
    await run(provider, write=second.append)
    assert first == second


@pytest.mark.parametrize("api", api_names())
async def test_its_program_answers_whatever_a_model_asks(api: str) -> None:
    asked = [
        Call("get_order", {"order_id": 1}),
        Call("track_parcel", {"carrier": "south", "number": "?"}),
        Call("refund", {"order_id": 1, "percent": 5}),
        Call("refund", {"order_id": 1042, "percent": 50}),
        Call("cancel_order", {"order_id": 1042}),
        Call("cancel_everything"),
    ]
    session = Session()
    session.push_user(QUESTION)
    llm = ScriptedModel([Reply(calls=asked), Reply(text="I see.")], api=api)
    outcome = await session.text_turn(llm, tools=_HelpDesk).collect()
    assert isinstance(outcome, NeedsTools)
    results = await execute(outcome.round)
    assert [result.status for result in results] == ["error", "error", "error", "rejected"]
    outcome.round.commit(session, results)
    assert isinstance(await session.text_turn(llm, tools=_HelpDesk).collect(), Finished)


@pytest.mark.parametrize(
    "arguments", [["demo"], ["demo", "--provider", "anthropic"], ["demo", "--model", "m"]]
)
def test_the_command_ends_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert SCRIPT[-1].text[:40] in out
    assert err == ""


def test_all_providers_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--provider", "all"]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if "test server" in line]
    words = ["Chat", "Responses", "Messages", "generateContent", "Converse", "Ollama"]
    assert [title.split()[1] for title in titles] == words


def test_every_api_of_the_library_can_be_asked() -> None:
    assert tuple(providers().values()) == api_names()


@pytest.mark.parametrize(
    ("provider", "module", "extra"),
    [
        ("openai-chat", "openai", "openai"),
        ("anthropic", "anthropic", "anthropic"),
        ("gemini", "google.genai", "gemini"),
        ("bedrock", "boto3", "bedrock"),
    ],
)
def test_without_the_sdk_it_says_in_one_line_what_to_install(
    provider: str,
    module: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo", "--provider", provider]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f'pip install ".[{extra}]"' in line


def test_live_without_credentials_of_a_cloud_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--live", "--provider", "bedrock"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "region" in line


@pytest.mark.parametrize(
    ("provider", "key"),
    [
        ("openai-chat", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY"),
    ],
)
def test_live_without_a_key_says_which_one(
    provider: str,
    key: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--live", "--provider", provider]) == 2
    assert key in capsys.readouterr().err


def test_live_asks_the_api_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lutumpy.testing import serve

    with serve(
        [Reply(calls=[Call("get_order", {"order_id": 1042})]), Reply(text="On its way.")]
    ) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        assert main(["demo", "--live", "--model", "my-model"]) == 0
        assert [request.body["model"] for request in server.requests] == ["my-model", "my-model"]
        assert "said       On its way." in capsys.readouterr().out
        assert main(["demo", "--live"]) == 1
        assert "the provider did not answer" in capsys.readouterr().err


def test_without_the_test_server_s_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.startswith(("starlette", "uvicorn", "lutumpy.testing.wire"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["demo"]) == 2
    assert 'pip install ".[testing]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["demo", "--provider", "nobody"], ["demo", "--provider=all", "--model=m"]]
)
def test_a_wrong_command_line_is_explained(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "usage: lutumpy" in capsys.readouterr().err.lower()


def test_it_is_a_module_and_a_script(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lutumpy", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["lutumpy", __version__]
