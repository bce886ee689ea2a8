"""Images, files, sounds and long texts in a request to OpenAI: the kinds and sizes that it takes.

Sources: OpenAI's API description (lengths), its guides to images and files (kinds), recorded
refusals of sound, and answers that users report (openai-dotnet#613, trpc-agent-go#1816,
litellm#6120, gptpdf#6, opencode#5704).
"""

# The rules look at what is in a request; the adapters ask the same functions before they put
# anything there, and write a text in place of what the API doesn't take. What is at an
# address is not known here, except for how the address ends.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.rules.media import (
    IMAGE_TYPES,
    data_type,
    image_type,
    is_data_url,
    is_sound_or_film,
    type_of_bytes,
)
from lutumpy.rules.openai.chat.limits import AUDIO_FORMATS
from lutumpy.rules.openai.chat.limits import FILE_TYPES as CHAT_FILE_TYPES
from lutumpy.rules.openai.limits import (
    MAX_FILE_DATA,
    MAX_FILE_ID,
    MAX_IMAGE_URL,
    MAX_TEXT_PART,
)
from lutumpy.rules.openai.responses.limits import FILE_TYPES as RESPONSES_FILE_TYPES
from lutumpy.rules.openai.shapes import long_string, wrong_type, wrong_value
from lutumpy.rules.problem import Certainty, Problem

# The name of the media type and the first bytes of the data are in this many characters.
_HEAD = 300


def takes_chat_file(media_type: str) -> bool:
    """Whether Chat Completions takes a file of this (plain) media type."""
    return media_type in CHAT_FILE_TYPES


def takes_responses_file(media_type: str) -> bool:
    """Whether Responses takes a file of this (plain) media type."""
    return media_type.startswith("text/") or media_type in RESPONSES_FILE_TYPES


def check_texts(
    rule: str, where: str, holder: Mapping[str, Any], keys: Iterable[str]
) -> list[Problem]:
    """Names, ids and addresses are texts."""
    for key in keys:
        value, at = holder.get(key), f"{where}.{key}"
        if value is not None and not isinstance(value, str):
            return [wrong_type(rule, at, "a string", value)]
        if key == "file_id" and value is not None and len(value) > MAX_FILE_ID:
            certainty: Certainty = "some" if rule.startswith("chat.") else "refused"
            return [long_string(rule, at, MAX_FILE_ID, len(value), certainty)]
    return []


def check_address(rule: str, where: str, url: str) -> list[Problem]:
    """An image is at an address that OpenAI fetches, or in a data URL.

    The words are those of both APIs [reported: Alibaba-NLP/OmniSearch#3, openai/codex#24169].
    """
    head, comma, data = url.partition(",")
    is_data = is_data_url(url)
    if head[:4].lower() == "http" or (is_data and (data or not comma)):
        return []
    got = "empty base64-encoded bytes" if is_data else "a value without the 'data:' prefix"
    subject = f"Invalid image URL: '{where}'" if rule.startswith("chat.") else f"Invalid '{where}'"
    message = (
        f"{subject}. Expected a base64-encoded data URL with an image MIME type "
        f"(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got {got}."
    )
    return [Problem(rule, where, message, "refused", param=where, code="invalid_value")]


def check_image(kind_rule: str, length_rule: str, where: str, url: Any) -> list[Problem]:
    """Problems of an image's URL: a kind that OpenAI doesn't read, or too many characters.

    Args:
        kind_rule: Id of the rule about kinds; its prefix says which API's words to use.
        length_rule: Id of the rule about lengths.
        where: The position of the URL.
        url: The URL; a problem of its type is another rule's.
    """
    kind = data_type(url)
    if kind is None or image_type(kind) is not None:
        return _check_length(length_rule, where, url, MAX_IMAGE_URL)
    # OpenAI looks at the bytes: an image that it reads is not refused for a wrong media type.
    if type_of_bytes(url[:_HEAD].partition(",")[2]) is not None:
        return _check_length(length_rule, where, url, MAX_IMAGE_URL)
    if not kind_rule.startswith("chat."):
        message = (
            "The image data you provided does not represent a valid image. Please check your input "
            f"and try again with one of the supported image formats: {list(IMAGE_TYPES)}."
        )
        return [Problem(kind_rule, where, message, "refused", param="input", code="invalid_value")]
    if kind.startswith("image/"):
        message = (
            "You uploaded an unsupported image. Please make sure your image has of one the "
            "following formats: ['png', 'jpeg', 'gif', 'webp']."
        )
    else:
        message = "Invalid MIME type. Only image types are supported."
    return [Problem(kind_rule, where, message, "refused", code="invalid_image_format")]


def check_file_data(
    kind_rule: str, length_rule: str, source_rule: str, where: str, data: Any
) -> list[Problem]:
    """Problems of a file's data URL: none at all, a kind that the API doesn't read, or too many
    characters.

    Only sound, film and images are known to be refused. Of texts and tables on Chat Completions
    the sources say both: OpenAI announced them, and later answers refuse them.

    Args:
        kind_rule: Id of the rule about kinds; its prefix says which API it is.
        length_rule: Id of the rule about lengths.
        source_rule: Id of the rule about sources.
        where: The position of the data.
        data: The data URL; a problem of its type is another rule's.
    """
    if not isinstance(data, str):
        return []
    kind = data_type(data)
    is_chat = kind_rule.startswith("chat.")
    takes = takes_chat_file if is_chat else takes_responses_file
    is_url = is_data_url(data)
    if is_url and (kind is None or takes(kind)):
        return _check_length(length_rule, where, data, MAX_FILE_DATA)
    if is_chat:
        expected, more = "an application/pdf MIME type (e.g. 'data:application/pdf", ""
    else:
        expected = "a valid file MIME type (e.g. 'data:text/plain"
        more = (
            " Please see https://platform.openai.com/docs/assistants/tools/file-search"
            "#supported-files for supported file types."
        )
    # Bytes without `data:` before them, or an address [reported: vercel/ai#7266, #7776].
    got = f"unsupported MIME type '{kind}'" if is_url else "an invalid base64-encoded value"
    message = (
        f"Invalid file data: '{where}'. Expected a base64-encoded data URL with {expected};base64,"
        f"SGVsbG8sIFdvcmxkIQ=='), but got {got}.{more}"
    )
    is_sure = not is_url or (kind or "").startswith(("audio/", "video/", "image/"))
    certainty: Certainty = "refused" if is_sure else "some"
    rule = kind_rule if is_url else source_rule
    return [Problem(rule, where, message, certainty, param=where, code="invalid_value")]


def check_file_url(rule: str, where: str, url: Any) -> list[Problem]:
    """Problems of a file's address: sound and film are refused by address, too [recorded]."""
    if not isinstance(url, str) or not is_sound_or_film(url):
        return []
    message = "The file type you uploaded is not supported. Please try again with a pdf"
    return [Problem(rule, where, message, "refused", param="input", code="unsupported_file")]


def check_sound(rule: str, where: str, form: Any) -> list[Problem]:
    """Problems of the format that an `input_audio` part names."""
    if not isinstance(form, str) or form in AUDIO_FORMATS:
        return []
    return [wrong_value(rule, where, form, AUDIO_FORMATS)]


def check_text(rule: str, where: str, value: Any) -> list[Problem]:
    """Problems of the length of one text part."""
    return _check_length(rule, where, value, MAX_TEXT_PART)


def _check_length(rule: str, where: str, value: Any, limit: int) -> list[Problem]:
    if not isinstance(value, str) or len(value) <= limit:
        return []
    message = (
        f"Invalid '{where}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {len(value)} instead."
    )
    # The numbers are documented for Responses only.
    certainty: Certainty = "some" if rule.startswith("chat.") else "refused"
    return [Problem(rule, where, message, certainty, param=where, code="string_above_max_length")]
