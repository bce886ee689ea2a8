"""Names that are made of texts are told apart, or said to be the same."""

from __future__ import annotations

import pytest

from lutumpy.plain.clean_names import choose_names, clean_names


def test_texts_that_can_t_be_told_apart_are_refused() -> None:
    assert clean_names(["a b", "a_b"])["a_b"] == "a_b"
    with pytest.raises(ValueError, match="can't be told apart"):
        choose_names({"first": iter(["name"]), "second": iter(["name"])})
