"""The rules of Converse about images, documents and films: which models are shown what.

Sources: recorded refusals and acceptances, and a reported one. What is at an address in S3
isn't known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy.rules.bedrock.limits import (
    DOCUMENT_NAME,
    MAX_IMAGE,
    REFUSED_IN_DOCUMENT_NAME,
)
from lutumpy.rules.bedrock.models import family, is_claude, takes_films
from lutumpy.rules.bedrock.shapes import refusal
from lutumpy.rules.bedrock.wire import WIRE
from lutumpy.rules.block_wire import Turn, join_turns, place_of
from lutumpy.rules.problem import Certainty, Problem, items

__all__ = ["check_media"]

_NO_FILM = (
    "This model doesn't support the video content block that you provided. Update the content "
    "block and try again."
)
_NO_S3 = "This model doesn't support the s3Uri field. Remove s3Uri and try again."
_NO_TEXT = "A text block must be included when using documents."
_BAD_NAME = (
    "The document file name can only contain alphanumeric characters, whitespace characters, "
    "hyphens, parentheses, and square brackets. The name can't contain more than one consecutive "
    "whitespace character. Check that the file name conforms to these restrictions and retry your "
    "request."
)


def check_media(messages: Any, model: str | None) -> list[Problem]:
    """Problems of what the messages and the results in them show."""
    found: list[Problem] = []
    images: list[tuple[str, Mapping[str, Any]]] = []
    for turn in join_turns(WIRE, messages):
        found += _check_company(turn)
        for where, part, in_result in _shown_in(turn):
            found += _check_part(where, part, model, in_result=in_result)
            if isinstance(part.get("image"), Mapping):
                images.append((f"{where}.image", part["image"]))
    return found + _check_images(images, model)


def _shown_in(turn: Turn) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Every block and every part of a result, with its position."""
    for path, block in turn.blocks:
        where = place_of(path)
        yield where, block, False
        result = block.get("toolResult")
        content = result.get("content") if isinstance(result, Mapping) else None
        for index, part in enumerate(items(content)):
            if isinstance(part, Mapping):
                yield f"{where}.toolResult.content.{index}", part, True


def _check_company(turn: Turn) -> list[Problem]:
    """A document wants a text block in its message."""
    documents = turn.of("document")
    texts = [block for _, block in turn.blocks if isinstance(block.get("text"), str)]
    if not documents or texts or turn.role != "user":
        return []
    return [refusal("converse.document_text", place_of(documents[0][0][:3]), _NO_TEXT)]


def _check_part(
    where: str, part: Mapping[str, Any], model: str | None, *, in_result: bool
) -> list[Problem]:
    found: list[Problem] = []
    for kind in ("image", "document", "video"):
        shown = part.get(kind)
        if not isinstance(shown, Mapping):
            continue
        source = shown.get("source")
        in_s3 = isinstance(source, Mapping) and source.get("s3Location") is not None
        place = f"{where}.{kind}"
        if kind == "video":
            found += _check_film(place, model)
        elif in_s3:
            found += _check_s3(place, kind, model, in_result=in_result)
        name = shown.get("name")
        if kind == "document" and isinstance(name, str) and not DOCUMENT_NAME.match(name):
            sure: Certainty = "refused" if REFUSED_IN_DOCUMENT_NAME.search(name) else "some"
            found.append(refusal("converse.document_name", f"{place}.name", _BAD_NAME, sure))
        if in_result and kind != "image":
            found += _check_in_result(where, kind, model, in_s3=in_s3)
    return found


def _check_images(
    images: Sequence[tuple[str, Mapping[str, Any]]], model: str | None
) -> list[Problem]:
    """Claude's limits, in the words of its own API, where positions are the same."""
    claude = is_claude(model)
    if claude is False or not images:
        return []
    from lutumpy.rules.claude_images import MANY_IMAGES, pixels_refusal  # few show anything

    beside_many = len(images) > MANY_IMAGES
    most_in_base64 = MAX_IMAGE // 3 * 4
    certainty: Certainty = "refused" if claude else "some"
    found: list[Problem] = []
    for where, image in images:
        source = image.get("source")
        data = source.get("bytes") if isinstance(source, Mapping) else None
        if not isinstance(data, str):
            continue
        words = ""
        if len(data) > most_in_base64:
            words = f": image exceeds 5 MB maximum: {len(data)} bytes > {most_in_base64} bytes"
        elif refused := pixels_refusal(data, beside_many=beside_many):
            words = f".data: {refused}"
        if words:
            place = f"{where}.source"
            message = f"The model returned the following errors: {place}.base64{words}"
            found.append(refusal("converse.image_size", place, message, certainty))
    return found


def _check_film(where: str, model: str | None) -> list[Problem]:
    takes = takes_films(model)
    if takes:
        return []
    return [
        refusal("converse.video_for_model", where, _NO_FILM, "some" if takes is None else "refused")
    ]


def _check_s3(where: str, kind: str, model: str | None, *, in_result: bool) -> list[Problem]:
    """Claude reads nothing from S3, but for a document in a result [recorded]."""
    claude = is_claude(model)
    if claude is False or (kind == "document" and in_result):
        return []
    message = _NO_S3
    if kind == "document":
        source = where.replace(".document", ".document.source.type")
        message = f"The model returned the following errors: {source}: Field required"
    certainty: Certainty = "refused" if claude else "some"
    return [refusal("converse.s3_for_model", f"{where}.source", message, certainty)]


def _check_in_result(where: str, kind: str, model: str | None, *, in_s3: bool) -> list[Problem]:
    """Nova takes no documents and no films in results: so from S3 [recorded], likely all."""
    if family(model) not in ("amazon", None) or (model is None and not in_s3):
        return []
    block = where.partition(".toolResult")[0]
    place = "#/" + block.replace(".", "/")
    message = (
        f"The model returned the following errors: Malformed input request: {place}: extraneous "
        "key [toolResult] is not permitted, please reformat your input and try again."
    )
    certainty: Certainty = "refused" if model is not None and in_s3 else "some"
    words = refusal("converse.result_media", f"{where}.{kind}", message, certainty)
    return [words]
