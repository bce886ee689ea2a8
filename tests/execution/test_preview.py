"""Texts cut for logs: between characters, within the bytes, and seen to be cut (rule E7)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lutumpy.execution import preview

TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    "aü€😀\ud83d\ude00\udc80", max_size=60
)


@given(text=TEXTS, max_bytes=st.integers(0, 80))
@example(text="\ud83d\ude00", max_bytes=4)
@example(text="\ud83d\ude00", max_bytes=3)
@example(text="abcd", max_bytes=3)
@example(text="ab", max_bytes=1)
def test_a_preview_fits_is_a_beginning_and_says_when_it_was_cut(text: str, max_bytes: int) -> None:
    shown = preview(text, max_bytes)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert len(shown.encode()) <= max_bytes
    if len(whole.encode()) <= max_bytes:
        assert shown == whole
        return
    mark = "…" if max_bytes >= 3 else "." * max_bytes
    assert shown.endswith(mark)
    kept = shown.removesuffix(mark)
    assert whole.startswith(kept) or "\ufffd" in kept
    # Not a byte less than a character's worth is given away.
    if max_bytes >= 3:
        assert len(kept.encode()) > max_bytes - 3 - 4


@given(text=TEXTS, max_bytes=st.integers(0, 80))
def test_without_a_mark_it_is_the_beginning_alone(text: str, max_bytes: int) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    shown = preview(text, max_bytes, mark="")
    assert len(shown.encode()) <= max_bytes
    assert whole.startswith(shown.rstrip("\ufffd"))


def test_a_huge_text_costs_what_is_shown_of_it() -> None:
    text = "ü" * 50_000_000
    for _ in range(1000):
        assert preview(text, 9) == "üüü…"


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes must be 0 or more, not -1"):
        preview("a", -1)
