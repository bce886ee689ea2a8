"""`lutumpy demo --durable`: what a killed process leaves, and what the next does (P5, P6, P10)."""

from __future__ import annotations

import signal

import pytest

from lutumpy.cli import main
from lutumpy.demo import durable
from lutumpy.demo.durable import DurableDemoError, run_durable

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")


def test_it_tells_what_was_and_was_not_done_twice() -> None:
    lines: list[str] = []
    run_durable(lines.append)
    report = "\n".join(lines)
    assert "by signal 9, in the middle of a payment" in report
    assert "2 answers were asked for" in report
    assert "requests   2 more answers" in lines  # neither of the first two again
    assert "the order was read once" in report
    assert "the receipt was sent 2 times, with the same key" in report
    assert "the payment was made once" in report
    assert "call_3  refund: The process that ran the tool ended" in report
    assert "resolved   call_3  it happened" in lines
    assert max(map(len, lines)) <= 100
    assert report.isascii()


def test_it_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--durable"]) == 0
    assert "the payment was made once" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [["--live"], ["--hooks"], ["--stream"], ["--provider", "all"], ["--model", "x"]]
)
def test_no_other_option_goes_with_it(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--durable", *more]) == 2
    assert "no other option goes with it" in capsys.readouterr().err


def test_a_process_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable.sys, "executable", "/bin/false")
    with pytest.raises(DurableDemoError, match="a process of the demo failed"):
        run_durable(print)


def test_a_system_without_the_signal_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(durable, "signal", object())
    with pytest.raises(DurableDemoError, match="SIGKILL"):
        run_durable(print)
    assert main(["demo", "--durable"]) == 2
    assert "SIGKILL" in capsys.readouterr().err
