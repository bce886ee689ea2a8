"""What the terminal is given: text, and nothing that acts on it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from lutumpy.cli.terminal import FileProgress, Output, cut_text, harmless, styled

EVERYTHING = st.text(
    alphabet=st.characters(), max_size=40
)  # lone surrogates and control characters included


@given(EVERYTHING)
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = harmless(text)
    for character in shown:
        assert character in "\n\t" or (ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0)
        assert not 0xD800 <= ord(character) <= 0xDFFF
        assert (
            character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
            "\u200b\u200e\u200f\ufeff\u2028\u2029"
        )
    assert harmless(shown) == shown
    shown.encode()


@given(
    st.text(
        alphabet=st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=40
    )
)
def test_what_people_write_is_left_as_it_is(text: str) -> None:
    assert harmless(text) == text


def test_emoji_made_of_several_characters_stay_whole() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f"
    assert harmless(family) == family


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_is_taken_out_is_shown(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_cut_says_how_much_is_missing() -> None:
    assert cut_text("x" * 10, 10) == "x" * 10
    assert cut_text("x" * 13, 10) == "x" * 10 + "… (3 more characters)"


def test_styles_go_only_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.print(styled(("bad", "bold red"), " [bold]not markup[/bold]"))
    assert capsys.readouterr().out == "bad [bold]not markup[/bold]\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], _Terminal]:
    """Makes standard error a terminal, from the test itself: before it, pytest sets its own."""

    def make() -> _Terminal:
        stream = _Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)
        return stream

    return make


@pytest.mark.parametrize(
    ("size", "as_json", "shown"),
    [(50_000_000, False, True), (50_000_000, True, False), (1_000, False, False)],
)
def test_only_long_files_and_people_get_a_bar(
    terminal: Callable[[], _Terminal], size: int, as_json: bool, shown: bool
) -> None:
    stream = terminal()
    with FileProgress(Output(as_json=as_json), "a\x1bb.json", size) as bar:
        bar.advance(size // 2)
    text = stream.getvalue()
    assert ("25.0/50.0 MB" in text) == shown
    assert ("a\\x1bb.json" in text) == shown


def test_the_bar_goes_away_before_something_is_printed(terminal: Callable[[], _Terminal]) -> None:
    stream = terminal()
    output = Output()
    with FileProgress(output, "a.json", 50_000_000) as bar:
        bar.advance(10_000_000)
        output.complain("found")
    *_, line = stream.getvalue().split("\x1b[2K")
    assert line == "found\n"


NONSENSE = [
    "0",
    "-5",
    "",
    "abc",
    "1",
    " 80",
    "1e2",
    "\u00b2",
    "\uff10",
    "\u0663\u0664",
    "99999999999999999999",
]


@pytest.mark.parametrize("columns", NONSENSE)
@pytest.mark.parametrize("on_terminal", [False, True])
def test_nonsense_in_columns_prints_as_at_80(
    columns: str,
    on_terminal: bool,
    terminal: Callable[[], _Terminal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def printed(columns: str) -> str:
        stream = terminal() if on_terminal else io.StringIO()
        # Not until the test's end: pytest reports it before, and reads the width as well.
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            patch.setenv("COLUMNS", columns)
            table = Table("name", "about")
            table.add_row("fetch", "a page of the web, whole " * 10)
            output = Output()
            output.complain("a line", table)
        return stream.getvalue()

    assert printed(columns) == printed("80")
    assert "fetch" in printed(columns)


@pytest.mark.parametrize("lines", NONSENSE)
def test_nonsense_in_lines_keeps_the_bar(
    lines: str, terminal: Callable[[], _Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = terminal()
    with monkeypatch.context() as patch:
        patch.setenv("LINES", lines)
        patch.setenv("COLUMNS", "0")
        with FileProgress(Output(), "a.json", 50_000_000) as bar:
            bar.advance(25_000_000)
    assert "25.0/50.0 MB" in stream.getvalue()


def test_a_width_that_the_environment_says_is_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    assert Output().console.width == 132
    monkeypatch.delenv("COLUMNS")
    assert Output().console.width == 100
