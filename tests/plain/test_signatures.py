"""Signatures and annotations that can't be evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.plain.signatures import annotations_of, signature_of


def test_what_has_no_signature_is_refused() -> None:
    with pytest.raises(TypeError):
        signature_of(3)  # type: ignore[arg-type]
    assert list(signature_of(lambda a: a).parameters) == ["a"]


def test_annotations_that_fail_are_asked_for_as_texts() -> None:
    class Meta(type):
        asked = 0

        @property
        def __annotations__(cls) -> dict[str, Any]:  # type: ignore[override]
            Meta.asked += 1
            if Meta.asked == 1:
                raise NameError("Engine")
            return {"a": "Engine"}

    class Odd(metaclass=Meta):
        pass

    assert dict(annotations_of(int)) == {}
    assert isinstance(annotations_of(Odd), dict)
