"""The Messages rules about what changes in the middle of a conversation: tools, effort, and texts
for one turn, all in system messages.

Sources: the vendor's pages "Change tools or instructions" and "Mid-conversation system messages",
the types and doc strings of its SDK (2.12), and nine recorded requests with `tool_addition`. Of the
refusals only the codes `tool_reference_unresolved` and `tool_name_conflict` are documented; the
words around them, and those about order and headers, are made up after the API's manner.
"""

# What is hard here
# -----------------
# A tool change is judged by what was in force when it was said. So the messages are read in order,
# with two tables: the kind of each tool that is known by then, and which of them are withdrawn.
#
#   | a block                                        | needs                | and then           |
#   |------------------------------------------------|----------------------|--------------------|
#   | `tool_addition` with a reference               | a known tool         | it is offered      |
#   | `tool_addition` with a definition              | no tool of that name | it is known        |
#   |                                                | and of another kind  | and offered        |
#   | `tool_removal` with a reference                | a known tool         | it is withdrawn    |
#   | `tool_use`                                     | a tool not withdrawn | nothing changes    |

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lutumpy.rules.anthropic.models import CLEAR_AT, EFFORT_UPDATES, INLINE_TOOLS, TOOL_CHANGES
from lutumpy.rules.anthropic.server_tools import SERVER_USES
from lutumpy.rules.anthropic.tools import check_tool
from lutumpy.rules.anthropic.wording import shape
from lutumpy.rules.problem import Problem, is_array, items, mapping, text

__all__ = ["CHANGES", "check_changes", "check_system_message", "defined_tools", "needed_betas"]

CHANGES = ("tool_addition", "tool_removal")
CHANGE_KEYS = frozenset({"type", "tool", "cache_control"})
REFERENCES: Mapping[str, tuple[str, ...]] = {
    "tool_reference": ("name",),
    "mcp_tool_reference": ("server_name", "name"),
    "mcp_toolset_reference": ("server_name",),
}
"""What a change names, and by which keys [SDK]."""

DEFINITION = "tool_definition"
CLEARED_AT = ("next_user_message", "never")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


# ------------------------------------------------------------------ shapes


def check_system_message(where: str, message: Mapping[str, Any]) -> list[Problem]:
    """Problems of what a system message says beside its content, and of the changes in it."""
    found = _check_clear_at(where, message) + _check_output_config(where, message)
    for index, block in enumerate(items(message.get("content"))):
        if isinstance(block, Mapping) and block.get("type") in CHANGES:
            found += _check_change(f"{where}.content.{index}.{block['type']}", block)
    return found


def _list_words(words: Collection[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)


def _check_clear_at(where: str, message: Mapping[str, Any]) -> list[Problem]:
    value = message.get("clear_at")
    at = f"{where}.clear_at"
    if value is None:
        return []
    if value not in CLEARED_AT:
        return [shape("anthropic.clear_at", at, f"Input should be {_list_words(CLEARED_AT)}")]
    if value == "never":
        return []
    found: list[Problem] = []
    for index, block in enumerate(items(message.get("content"))):
        kind = block.get("type") if isinstance(block, Mapping) else "text"
        at = f"{where}.content.{index}"
        if kind != "text":
            words = f"a message with `clear_at` can hold only `text` blocks, not `{kind}`"
            found.append(shape("anthropic.clear_at", at, words))
        elif isinstance(block, Mapping) and block.get("cache_control") is not None:
            words = "a message with `clear_at` can't have `cache_control`"
            found.append(shape("anthropic.clear_at", f"{at}.text.cache_control", words))
    return found


def _check_output_config(where: str, message: Mapping[str, Any]) -> list[Problem]:
    rule, at = "anthropic.message_effort", f"{where}.output_config"
    config = message.get("output_config")
    has_content = message.get("content") not in (None, "", [], ())
    if config is None:
        # A message that lacks its content otherwise is reported as such.
        return []
    if not isinstance(config, Mapping):
        return [shape(rule, at, "Input should be an object")]
    found = [
        shape(rule, f"{at}.{key}", "Extra inputs are not permitted")
        for key in config
        if key != "effort"
    ]
    effort = config.get("effort")
    if effort is not None and effort not in EFFORTS:
        found.append(shape(rule, f"{at}.effort", f"Input should be {_list_words(EFFORTS)}"))
    elif effort is None and not has_content and not found:
        words = "a `system` message needs `content`, or a field of `output_config`"
        found.append(shape(rule, where, words))
    return found


def _check_change(where: str, block: Mapping[str, Any]) -> list[Problem]:
    rule = "anthropic.tool_change"
    found = [
        shape(rule, f"{where}.{key}", "Extra inputs are not permitted")
        for key in block
        if key not in CHANGE_KEYS
    ]
    tool, at = block.get("tool"), f"{where}.tool"
    if tool is None:
        return [*found, shape(rule, at, "Field required")]
    if not isinstance(tool, Mapping):
        return [*found, shape(rule, at, "Input should be an object")]
    kind = tool.get("type")
    is_addition = block.get("type") == "tool_addition"
    expected = [*REFERENCES, DEFINITION] if is_addition else [*REFERENCES]
    if kind is None:
        return [*found, shape(rule, at, "Unable to extract tag using discriminator 'type'")]
    if kind not in expected:
        tags = ", ".join([f"'{tag}'" for tag in expected])
        words = (
            f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
        return [*found, shape(rule, at, words)]
    at = f"{at}.{kind}"
    wanted = ("definition",) if kind == DEFINITION else REFERENCES[kind]
    found += [
        shape(rule, f"{at}.{key}", "Extra inputs are not permitted")
        for key in tool
        if key not in ("type", *wanted)
    ]
    for key in wanted:
        value = tool.get(key)
        if value is None:
            found.append(shape(rule, f"{at}.{key}", "Field required"))
        elif key == "definition":
            found += check_tool(f"{at}.definition", value)
        elif not isinstance(value, str):
            found.append(shape(rule, f"{at}.{key}", "Input should be a valid string"))
    return found


# ------------------------------------------------------------------- order


def defined_tools(messages: Any) -> Iterator[Mapping[str, Any]]:
    """The tools that messages define by value, in order."""
    for _, _, block in _changes_in(messages):
        tool = mapping(block.get("tool"))
        definition = mapping(tool.get("definition")) if tool is not None else None
        if definition is not None:
            yield definition


def _changes_in(messages: Any) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """The blocks of system messages that change tools, with their message and position."""
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping) or message.get("role") != "system":
            continue
        for number, block in enumerate(items(message.get("content"))):
            if isinstance(block, Mapping) and block.get("type") in CHANGES:
                yield index, f"messages.{index}.content.{number}", block


def check_changes(
    messages: Any, tools: Any, *, betas: Collection[str] | None = None, held: bool = False
) -> list[Problem]:
    """Problems of the place of changes, of what they name, and of the headers that they need.

    Args:
        messages: The request's `messages`.
        tools: Its `tools`; `None` where they aren't known, and then every name may be one.
        betas: The beta names that the request asks for; `None` where they aren't known.
        held: The conversation's start is at the server, with tools that aren't here.
    """
    found = _check_headers(messages, betas) if betas is not None else []
    if not any(True for _ in _changes_in(messages)):
        return found
    found += _check_roles_before(messages)
    knows_all = is_array(tools) and not held
    return found + _check_names(messages, tools, knows_all)


def _check_headers(messages: Any, betas: Collection[str]) -> list[Problem]:
    found: list[Problem] = []
    for where, what, names in _needed_headers(messages):
        if not any(name in betas for name in names):
            words = f"{where}: `{what}` requires the beta header `{names[0]}`"
            found.append(Problem("anthropic.beta_header", where, words, "refused"))
    return found


def _needed_headers(messages: Any) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """What needs a beta name: its place, what it is, and the names of which one is enough."""
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping) or message.get("role") != "system":
            continue
        if message.get("clear_at") is not None:
            yield f"messages.{index}.clear_at", "clear_at", (CLEAR_AT,)
        if message.get("output_config") is not None:
            yield f"messages.{index}.output_config", "output_config", (EFFORT_UPDATES,)
    for _, where, block in _changes_in(messages):
        tool = mapping(block.get("tool")) or {}
        if tool.get("type") == DEFINITION:
            yield where, DEFINITION, (INLINE_TOOLS,)
        else:
            yield where, str(block["type"]), (TOOL_CHANGES, INLINE_TOOLS)


def needed_betas(messages: Any) -> list[str]:
    """The fewest beta names that the changes in these messages need, in a fixed order."""
    needs = [names for _, _, names in _needed_headers(messages)]
    chosen = {names[0] for names in needs if len(names) == 1}
    chosen |= {names[0] for names in needs if not chosen.intersection(names)}
    return sorted(chosen)


def _check_roles_before(messages: Any) -> list[Problem]:
    """A change follows a user message, or the result of a tool that the provider has run, and never
    a turn that it has paused.
    """
    found: list[Problem] = []
    listed = items(messages)
    for index, where, block in _changes_in(messages):
        before = _message_before(listed, index)
        if before is None or before.get("role") != "assistant":
            continue
        blocks = [part for part in items(before.get("content")) if isinstance(part, Mapping)]
        kind = text(blocks[-1].get("type")) or "" if blocks else ""
        if kind.endswith("_tool_result"):
            continue
        if kind in SERVER_USES:
            words = f"{where}: `{block['type']}` can't directly follow a paused turn"
            found.append(Problem("anthropic.tool_change_paused", where, words, "refused"))
            continue
        words = (
            f"{where}: `{block['type']}` must follow a `user` message or the result of a server "
            "tool"
        )
        found.append(Problem("anthropic.tool_change_position", where, words, "refused"))
    return found


def _message_before(listed: Any, index: int) -> Mapping[str, Any] | None:
    """The last message before one that isn't of the system."""
    for message in reversed(listed[:index]):
        if isinstance(message, Mapping) and message.get("role") != "system":
            return message
    return None


def _check_names(messages: Any, tools: Any, knows_all: bool) -> list[Problem]:
    kinds = {
        str(tool.get("name")): _kind_of(tool) for tool in items(tools) if isinstance(tool, Mapping)
    }
    # Tools may be given by their names alone, and then their kinds aren't known.
    kinds.update({tool: "" for tool in items(tools) if isinstance(tool, str)})
    withdrawn: set[str] = set()
    found: list[Problem] = []
    for index, message in enumerate(items(messages)):
        if not isinstance(message, Mapping):
            continue
        for number, block in enumerate(items(message.get("content"))):
            if not isinstance(block, Mapping):
                continue
            where = f"messages.{index}.content.{number}"
            if block.get("type") == "tool_use":
                found += _check_call(where, block, withdrawn)
            elif message.get("role") == "system" and block.get("type") in CHANGES:
                found += _check_name(where, block, kinds, withdrawn, knows_all)
    return found


def _kind_of(tool: Mapping[str, Any]) -> str:
    return text(tool.get("type")) or "custom"


def _check_call(where: str, block: Mapping[str, Any], withdrawn: set[str]) -> list[Problem]:
    name = text(block.get("name"))
    if name is None or name not in withdrawn:
        return []
    words = f"{where}: the tool `{name}` was withdrawn before this call"
    call_id = text(block.get("id"))
    ids = (call_id,) if call_id else ()
    # A model may call whatever it has seen, and its call goes back with an error for a result.
    return [Problem("anthropic.withdrawn_tool", where, words, "some", call_ids=ids, tools=(name,))]


def _check_name(
    where: str,
    block: Mapping[str, Any],
    kinds: dict[str, str],
    withdrawn: set[str],
    knows_all: bool,
) -> list[Problem]:
    tool = mapping(block.get("tool")) or {}
    kind = tool.get("type")
    if kind == DEFINITION:
        definition = mapping(tool.get("definition")) or {}
        name = text(definition.get("name"))
        if name is None:
            return []
        known = kinds.get(name)
        if known and known != _kind_of(definition):
            words = (
                f"{where}: tool_name_conflict: the tool `{name}` is defined as another kind of tool"
            )
            code = "tool_name_conflict"
            rule = "anthropic.tool_name_conflict"
            return [Problem(rule, where, words, "refused", code=code, tools=(name,))]
        kinds[name] = _kind_of(definition)
        withdrawn.discard(name)
        return []
    name = text(tool.get("name"))
    if kind != "tool_reference" or name is None:
        return []
    if knows_all and name not in kinds:
        words = (
            f"{where}: tool_reference_unresolved: the tool `{name}` is neither in `tools` nor "
            "defined earlier in `messages`"
        )
        code = "tool_reference_unresolved"
        rule = "anthropic.tool_reference_unresolved"
        return [Problem(rule, where, words, "refused", code=code, tools=(name,))]
    if block.get("type") == "tool_removal":
        withdrawn.add(name)
    else:
        withdrawn.discard(name)
    return []
