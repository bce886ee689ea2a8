"""Kinds and sizes of media: the limits that nothing small reaches."""

from __future__ import annotations

from lutumpy.rules import media
from lutumpy.rules.anthropic.limits import MAX_DOCUMENT
from lutumpy.rules.anthropic.media import check_source
from lutumpy.rules.openai import media as openai_media
from lutumpy.rules.openai.limits import MAX_TEXT_PART


def test_a_text_and_a_document_beyond_the_limit_are_refused() -> None:
    long = "x" * (MAX_TEXT_PART + 1)
    (chat,) = openai_media.check_text("chat.part_length", "messages[0]", long)
    (responses,) = openai_media.check_text("responses.part_length", "input[0]", long)
    assert (chat.certainty, responses.certainty) == ("some", "refused")
    assert openai_media.check_text("chat.part_length", "messages[0]", "x") == []
    data = "x" * (MAX_DOCUMENT + 1)
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    block = {"type": "document", "source": source}
    (found,) = check_source("anthropic.document_type", "anthropic.document_size", "document", block)
    assert found.rule == "anthropic.document_size"


def test_text_that_is_no_base64_begins_like_no_image() -> None:
    assert media.type_of_bytes("a\u00e9bcdefg") is None
