"""The tables of the rules against the types of the installed SDKs: what an SDK can send is never an
unknown field.

A table may have more than an SDK: other versions, and what hosts accept. A new SDK that can send
more fails here, and the message names what the table lacks.
"""

from __future__ import annotations

import collections.abc
import importlib
import sys
import types
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from typing_extensions import NotRequired, Required, get_type_hints

from lutumpy.rules.anthropic import blocks as anthropic_blocks
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.anthropic import parts as anthropic_parts
from lutumpy.rules.anthropic import requests as anthropic_requests
from lutumpy.rules.anthropic import tools as anthropic_tools
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.chat import parts as chat_parts
from lutumpy.rules.openai.chat import tools as chat_tools
from lutumpy.rules.openai.parts import IMAGE_DETAILS
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.openai.responses import kinds as responses_kinds
from lutumpy.rules.openai.responses import parts as responses_parts
from lutumpy.rules.openai.responses import requests as responses_requests
from lutumpy.rules.openai.responses import tools as tools_of_responses

PART = "ChatCompletionContentPartParam"
WRAPPERS: tuple[Any, ...] = (Required, NotRequired, Annotated)
UNIONS: tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
HEADERS = {"betas", "user_profile_id", "workspace_id"}
"""What the Anthropic SDK takes as parameters of a request and sends as headers."""


def sdk_type(path: str) -> Any:
    """A type by `module:name`; skips where this SDK doesn't have it yet."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        pytest.skip(f"the installed SDK has no {path}")


def alternatives(hint: Any) -> Iterator[Any]:
    """What a type may be, one by one: members of unions, elements of lists; values of literals as
    `Literal` types.
    """
    origin = get_origin(hint)
    if origin in WRAPPERS:
        yield from alternatives(get_args(hint)[0])
    elif origin in UNIONS:
        for member in get_args(hint):
            yield from alternatives(member)
    elif (
        isinstance(origin, type)
        and issubclass(origin, collections.abc.Iterable)
        and not issubclass(origin, dict)
    ):
        yield from alternatives(get_args(hint)[0])
    elif hint is not type(None):
        yield hint


def objects(*hints: Any) -> list[type]:
    """The objects among the alternatives: TypedDicts, and models where an SDK lets one send what it
    answered.
    """
    found = [each for hint in hints for each in alternatives(hint)]
    return [
        each
        for each in found
        if isinstance(each, type) and (hasattr(each, "__total__") or is_model(each))
    ]


def is_model(value: type) -> bool:
    return issubclass(value, BaseModel) and value is not BaseModel


def fields(owner: type) -> dict[str, Any]:
    """A TypedDict's or model's keys with their types."""
    if is_model(owner):
        fields = owner.model_fields  # type: ignore[attr-defined]
        return {name: field.annotation for name, field in fields.items()}
    hints: dict[str, Any] = get_type_hints(
        owner, vars(sys.modules[owner.__module__]), include_extras=True
    )
    return hints


def field(owner: Any, name: str) -> Any:
    """The type of one key, over all members of a union that have it."""
    found = tuple([fields(each)[name] for each in objects(owner) if name in fields(each)])
    if not found:
        pytest.skip(f"the installed SDK has no {name} in {owner}")
    return Union[found]


def keys(*owners: Any) -> set[str]:
    return {key for owner in objects(*owners) for key in fields(owner)}


def values(*hints: Any) -> set[str]:
    """The strings of literals."""
    return {
        value
        for hint in hints
        for each in alternatives(hint)
        if get_origin(each) is Literal
        for value in get_args(each)
        if isinstance(value, str)
    }


def tagged(tag: str, *hints: Any) -> dict[str, list[type]]:
    """The objects of a union by the value of a key, as `type` or `role`."""
    found: dict[str, list[type]] = {}
    for each in objects(*hints):
        for value in values(fields(each).get(tag)):
            found.setdefault(value, []).append(each)
    return found


def lacking(table: Collection[str], sent: Collection[str]) -> list[str]:
    """What an SDK can send and the table doesn't know."""
    assert sent, "nothing was found in the SDK: its types have moved"
    return sorted(set(sent) - set(table))


def merged(*groups: dict[str, list[type]]) -> dict[str, list[type]]:
    found: dict[str, list[type]] = {}
    for group in groups:
        for tag, owners in group.items():
            found.setdefault(tag, []).extend(owners)
    return found


# ------------------------------------------------------------------- Chat

CHAT = "openai.types.chat.completion_create_params:CompletionCreateParams"
CHAT_MESSAGE = "openai.types.chat:ChatCompletionMessageParam"


def test_chat_knows_every_parameter() -> None:
    assert lacking(chat.PARAMETERS, keys(sdk_type(CHAT))) == []


def test_chat_knows_every_role_and_what_its_content_may_be() -> None:
    roles = tagged("role", sdk_type(CHAT_MESSAGE))
    assert lacking(chat.ROLES, roles) == []
    for role, owners in roles.items():
        kinds = tagged("type", *[fields(owner)["content"] for owner in owners])
        if kinds:
            assert (role, lacking(chat.PARTS[role], kinds)) == (role, [])


def test_chat_knows_every_kind_of_call_tool_and_choice() -> None:
    calls = tagged("type", field(sdk_type(CHAT_MESSAGE), "tool_calls"))
    assert lacking(chat.CALL_TYPES, calls) == []
    assert lacking(chat_tools.TOOL_TYPES, tagged("type", field(sdk_type(CHAT), "tools"))) == []
    choice = field(sdk_type(CHAT), "tool_choice")
    assert lacking(chat_tools.CHOICES, values(choice)) == []
    assert lacking(chat_tools.CHOICE_TYPES, tagged("type", choice)) == []
    allowed = [fields(each)["allowed_tools"] for each in tagged("type", choice)["allowed_tools"]]
    assert (
        lacking(chat_tools.ALLOWED_MODES, values(*[field(each, "mode") for each in allowed])) == []
    )


# -------------------------------------------------------------- Responses

RESPONSES = "openai.types.responses.response_create_params:ResponseCreateParams"
ITEM = "openai.types.responses.response_input_item_param:ResponseInputItemParam"


def test_responses_knows_every_parameter() -> None:
    assert lacking(responses.PARAMETERS, keys(sdk_type(RESPONSES))) == []


def test_responses_knows_every_parameter_of_a_count() -> None:
    counted = sdk_type("openai.types.responses.input_token_count_params:InputTokenCountParams")
    assert lacking(responses_requests.COUNT_PARAMETERS, keys(counted)) == []


def test_responses_knows_every_item() -> None:
    items = tagged("type", sdk_type(ITEM))
    assert lacking(responses.ITEM_TYPES, items) == []
    for kind, known in responses.ITEM_KEYS.items():
        assert (kind, lacking(known, keys(*items[kind]))) == (kind, [])


def test_responses_knows_every_role_and_part_of_a_message() -> None:
    messages = tagged("type", sdk_type(ITEM))["message"]
    assert lacking(responses.ROLES, values(*[fields(each)["role"] for each in messages])) == []
    sent = [each for each in messages if values(fields(each)["role"]) != {"assistant"}]
    said = [each for each in messages if values(fields(each)["role"]) == {"assistant"}]
    inputs = tagged("type", *[fields(each)["content"] for each in sent])
    assert lacking(responses.INPUT_PARTS + responses.OTHER_PARTS, inputs) == []
    assert (
        lacking(
            responses.ASSISTANT_PARTS, tagged("type", *[fields(each)["content"] for each in said])
        )
        == []
    )


def test_responses_knows_every_part_of_an_output() -> None:
    items = tagged("type", sdk_type(ITEM))
    for kind in ("function_call_output", "custom_tool_call_output"):
        parts = tagged("type", *[fields(each)["output"] for each in items[kind]])
        assert (kind, lacking(responses.INPUT_PARTS, parts)) == (kind, [])


def test_responses_pairs_every_call_that_waits_for_an_output() -> None:
    items = tagged("type", sdk_type(ITEM))
    ours = [
        kind for kind in items if kind.endswith("_output") and kind != "program_output"
    ]  # the server runs programs
    assert lacking(responses_kinds.OUTPUT_TO_CALLS, ours) == []
    calls = {kind for kinds in responses_kinds.OUTPUT_TO_CALLS.values() for kind in kinds}
    assert calls <= responses_kinds.CALL_WORDS.keys()


def test_responses_knows_every_tool_and_choice() -> None:
    assert (
        lacking(tools_of_responses.TOOL_TYPES, tagged("type", field(sdk_type(RESPONSES), "tools")))
        == []
    )
    choice = field(sdk_type(RESPONSES), "tool_choice")
    assert lacking(tools_of_responses.CHOICES, values(choice)) == []
    chosen = tagged("type", choice)
    assert lacking([*tools_of_responses.TOOL_TYPES, "allowed_tools"], chosen) == []
    modes = values(*[fields(each)["mode"] for each in chosen["allowed_tools"]])
    assert lacking(tools_of_responses.ALLOWED_MODES, modes) == []


# --------------------------------------------------------------- Messages

STABLE = "anthropic.types.message_create_params:MessageCreateParams"
BETA = "anthropic.types.beta.message_create_params:MessageCreateParams"
MESSAGES = pytest.mark.parametrize("path", [STABLE, BETA])


@MESSAGES
def test_messages_knows_every_parameter(path: str) -> None:
    assert lacking(anthropic.PARAMETERS, keys(sdk_type(path)) - HEADERS) == []


@pytest.mark.parametrize(
    "path",
    [
        "anthropic.types.message_count_tokens_params:MessageCountTokensParams",
        "anthropic.types.beta.message_count_tokens_params:MessageCountTokensParams",
    ],
)
def test_messages_knows_every_parameter_of_a_count(path: str) -> None:
    assert lacking(anthropic.COUNT_PARAMETERS, keys(sdk_type(path)) - HEADERS) == []


@MESSAGES
def test_messages_knows_every_role_and_block(path: str) -> None:
    messages = objects(field(sdk_type(path), "messages"))
    assert lacking(anthropic.ROLES, values(*[fields(each)["role"] for each in messages])) == []
    blocks = tagged("type", *[fields(each)["content"] for each in messages])
    assert lacking(anthropic_blocks.BLOCK_TYPES, blocks) == []
    for kind, known in anthropic_blocks.CLOSED_BLOCKS.items():
        # What a program writes; the models of answers may have keys that are not sent back.
        written = [each for each in blocks[kind] if not is_model(each)]
        assert (kind, lacking(known, keys(*written))) == (kind, [])
    results = tagged("type", *[fields(each)["content"] for each in blocks["tool_result"]])
    assert lacking(anthropic_blocks.RESULT_TYPES, results) == []


@MESSAGES
def test_messages_knows_every_thinking_thread_and_compaction(path: str) -> None:
    sent = sdk_type(path)
    assert lacking(anthropic.THINKING_TYPES, tagged("type", field(sent, "thinking"))) == []
    if "thread" in keys(sent):
        threads = tagged("type", field(sent, "thread"))
        assert lacking(anthropic_requests.THREAD_KEYS, threads) == []
        for kind, owners in threads.items():
            assert (kind, lacking(anthropic_requests.THREAD_KEYS[kind], keys(*owners))) == (
                kind,
                [],
            )
        compactions = tagged("type", field(sent, "compaction"))
        assert lacking(anthropic_requests.COMPACTION_TYPES, compactions) == []
        assert (
            lacking(anthropic_requests.COMPACTION_KEYS, keys(*objects(field(sent, "compaction"))))
            == []
        )
        policy = field(sent, "billing_policy")
        assert lacking(anthropic_requests.BILLING_KEYS, keys(policy)) == []
        assert lacking(anthropic_requests.BILL_TO, values(field(policy, "bill_to"))) == []


@MESSAGES
def test_messages_knows_every_tool_and_choice(path: str) -> None:
    sent = sdk_type(path)
    tools = tagged("type", field(sent, "tools"))
    assert lacking(anthropic_tools.TOOL_TYPES, tools) == []
    assert lacking(anthropic_tools.KEYS, keys(*tools["custom"])) == []
    choices = tagged("type", field(sent, "tool_choice"))
    assert lacking(anthropic_tools.CHOICES, choices) == []
    for kind, owners in choices.items():
        assert (kind, lacking(anthropic_tools.CHOICE_KEYS[kind], keys(*owners))) == (kind, [])


# ---------------------------------------------------------------- the test


def test_a_field_that_a_table_lacks_is_named() -> None:
    assert lacking(chat.PARAMETERS - {"seed"}, keys(sdk_type(CHAT))) == ["seed"]
    assert lacking(set(responses.ITEM_TYPES) - {"reasoning"}, tagged("type", sdk_type(ITEM))) == [
        "reasoning"
    ]
    assert lacking(
        anthropic.THINKING_TYPES[:1], tagged("type", field(sdk_type(STABLE), "thinking"))
    )
    with pytest.raises(AssertionError, match="moved"):
        lacking(chat.PARAMETERS, [])


# ---------------------------------------------- parts that a program writes for one API alone


def fields_of_parts(table: Any, kind: str) -> set[str]:
    required, optional = table[kind]
    return {"type", *required, *optional}


@pytest.mark.parametrize("kind", sorted(chat_parts.FIELDS))
def test_a_part_of_chat_may_have_every_field(kind: str) -> None:
    sent = sdk_type("openai.types.chat.chat_completion_content_part_param:" + PART)
    owners = tagged("type", sent)[kind]
    assert lacking(fields_of_parts(chat_parts.FIELDS, kind), keys(*owners)) == []


def test_an_image_of_chat_may_be_looked_at_as_closely_as_the_sdk_lets_one() -> None:
    image = field(sdk_type("openai.types.chat:ChatCompletionContentPartImageParam"), "image_url")
    assert lacking(IMAGE_DETAILS, values(field(image, "detail"))) == []


@pytest.mark.parametrize(
    "name", ["ResponseInputContentParam", "ResponseFunctionCallOutputItemParam"]
)
@pytest.mark.parametrize("kind", sorted(responses_parts.FIELDS))
def test_a_part_of_responses_may_have_every_field(kind: str, name: str) -> None:
    owners = tagged("type", sdk_type(f"openai.types.responses:{name}"))[kind]
    assert lacking(fields_of_parts(responses_parts.FIELDS, kind), keys(*owners)) == []
    if kind == "input_image":
        assert lacking(IMAGE_DETAILS, values(field(Union[tuple(owners)], "detail"))) == []


@MESSAGES
@pytest.mark.parametrize("kind", sorted(anthropic_parts.FIELDS))
def test_a_block_of_messages_may_have_every_field(kind: str, path: str) -> None:
    messages = objects(field(sdk_type(path), "messages"))
    blocks = tagged("type", *[fields(each)["content"] for each in messages])
    results = tagged("type", *[fields(each)["content"] for each in blocks["tool_result"]])
    owners = [*blocks.get(kind, ()), *results.get(kind, ())]
    written = [each for each in owners if not is_model(each)]
    known = {"cache_control", *fields_of_parts(anthropic_parts.FIELDS, kind)}
    assert lacking(known, keys(*written)) == []
