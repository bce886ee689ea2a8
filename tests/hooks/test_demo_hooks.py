"""`lutumpy demo --hooks`: an approval gate and a cache hit."""

from __future__ import annotations

import pytest

from lutumpy.cli import main
from lutumpy.demo import SCRIPT_FOR_HOOKS, provider_names, run


@pytest.mark.pure
@pytest.mark.parametrize("provider", provider_names())
async def test_it_shows_a_cache_hit_and_what_the_gate_changed(provider: str) -> None:
    lines: list[str] = []
    result = await run(provider, hooks=True, write=lines.append)
    report = "\n".join(lines)
    assert result is not None
    assert result.text == SCRIPT_FOR_HOOKS[-1].text
    assert "decided    call_6  get_order: handled by Cache.any_tool_hook" in lines
    assert (
        '           call_7  refund: edited, will run with {"order_id": 1042, "percent": 10}'
        in lines
    )
    assert "executed   call_7  refund: ok" in lines  # and nothing else in that round
    assert 'told       call_6  {"item":"kettle"' in report
    assert "call_7  paid back 3.95" in report
    assert '"percent":20' in report.replace(
        '"percent": 20', '"percent":20'
    )  # what the model asked stays
    assert "decided    call_3  track_parcel: issue" in lines
    assert max(map(len, lines)) <= 100


def test_the_command_has_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--hooks"]) == 0
    assert "handled by Cache.any_tool_hook" in capsys.readouterr().out
    assert main(["demo"]) == 0
    assert "decided" not in capsys.readouterr().out
