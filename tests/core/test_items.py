"""Values of a conversation: what can't be said is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy import FilePart, ImagePart


@pytest.mark.parametrize("part", [ImagePart, FilePart])
def test_a_part_is_bytes_with_their_type_or_an_address(part: Any) -> None:
    assert part(data=b"x", media_type="a/b").url is None
    assert part(url="https://x").data is None
    for wrong in ({}, {"data": b"x", "media_type": "a/b", "url": "https://x"}):
        with pytest.raises(ValueError, match="Part takes either data or url"):
            part(**wrong)
    for wrong in ({"data": b"x"}, {"data": b"x", "media_type": ""}):
        with pytest.raises(ValueError, match="Part with data needs its media_type"):
            part(**wrong)
