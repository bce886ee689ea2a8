"""The display of loops and batches: what it counts, and that it fits into a program's output."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from loop_toolkit import ANSWER, Runner, asked, calls, look, script
from rich.console import Console

from lutumpy import AdapterError
from lutumpy.loops import show_progress


def quiet() -> Console:
    return Console(file=io.StringIO(), width=120)


def text_of(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_one_loop_is_shown(run: Runner) -> None:
    console = quiet()
    with show_progress(console=console) as show:
        llm = script(calls(look("cat"), usage=(20, 4)), ANSWER)
        done = run(asked(), llm, on_progress=show)
    assert (show.rounds, show.tokens) == (1, done.usage.total_tokens)
    assert "answer after 1 rounds" in text_of(console)
    assert "39 tokens" in text_of(console)


def test_a_batch_is_counted_with_what_failed(run: Runner) -> None:
    console = quiet()
    with show_progress(3, console=console) as show:
        for number in range(3):
            entries = [] if number == 1 else [calls(look("cat")), ANSWER]
            try:
                with show.one() as each:
                    run(asked(), script(*entries), on_progress=each)
            except AdapterError:
                assert number == 1  # the script has no answer left
    assert (show.done, show.failed, show.rounds) == (3, 1, 2)
    assert "3/3" in text_of(console)
    assert "1 failed" in text_of(console)


def test_many_threads_report_to_one_display() -> None:
    with show_progress(40, console=quiet()) as show:

        def work() -> None:
            for _ in range(10):
                with show.one() as each:
                    Runner("sync")(asked(), script(calls(look("cat")), ANSWER), on_progress=each)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (show.done, show.failed, show.rounds) == (40, 0, 40)


def test_what_is_written_by_a_model_is_no_markup() -> None:
    console = quiet()
    with show_progress(console=console) as show:
        llm = script(calls(look("[red]cat")), ANSWER)
        Runner("asyncio")(asked(), llm, on_progress=show)
    assert "\x1b" not in text_of(console)


def test_without_rich_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"\.\[cli\]"):
        show_progress()


def test_a_wrong_total_is_refused() -> None:
    with pytest.raises(ValueError, match="total=-1"):
        show_progress(-1)
