"""What becomes of calls that a model damages: no format reads one that it didn't write (T2, C5)."""

from __future__ import annotations

import pytest
from damage import DAMAGE, NOTHING_KNOWN, outcomes

from lutumpy.text_tools import text_formats

# What is lost without a word beside `NOTHING_KNOWN`, and why nothing can be known of it.
LOST = {
    # Nothing of its marks is left as it was.
    "escaped as in XML": {"gigachat3", "plamo3", "kimi_k3", "minimax_m3"},
    # Its start tag is the fence.
    "blank in the start tag": {"gemma_tool_code"},
    # A fence beside other text is a quote (T3), and its own form is a fence.
    "prose before": {"xlam_fence"},
    "prose behind": {"xlam_fence"},
    "list item": {"xlam_fence"},
    "block quote": {"xlam_fence"},
    "bold": {"xlam_fence"},
    "behind thinking closed twice": {"xlam_fence"},
    # In a fence, with a name and a text: so does a quote look.
    "in a fence": {"react_text"},
    "in a fence for JSON": {"react_text"},
    # The name of the tool isn't there any more.
    "third character lost": {"llama3_bare", "pythonic"},
}


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize(
    ("calls", "required", "step"), [(2, False, 1), (1, False, 3), (1, True, 3)]
)
def test_damaged_calls_are_right_or_told_and_never_others_T2_C5_C7(
    calls: int, required: bool, step: int
) -> None:
    assert len(DAMAGE) == 48
    for one in text_formats()[calls % step :: step]:
        for kind, outcome in outcomes(one, calls, required=required).items():
            assert outcome != "wrong", (one.name, kind)
            if kind not in NOTHING_KNOWN and one.name not in LOST.get(kind, ()):
                assert outcome in ("right", "told"), (one.name, kind, outcome)
