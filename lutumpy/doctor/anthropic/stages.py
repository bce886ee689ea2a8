"""Repairs of Anthropic's messages: what stands inside one message or block, and in which role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.doctor.anthropic.ids import mend_ids, mend_repeats
from lutumpy.doctor.anthropic.order import mend_shown, mend_thinking_first, mend_uses_last
from lutumpy.doctor.anthropic.pairing import mend_order, mend_pairing, mend_roles
from lutumpy.doctor.anthropic.turns import Conversation
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.entries import mend_entry, mend_role_name
from lutumpy.doctor.foreign import mend_foreign_part
from lutumpy.doctor.media import mend_block
from lutumpy.doctor.mending import (
    Mender,
    Stage,
    drop_entry,
    drop_key,
    each,
    message_index,
    placed,
    replace_characters,
    write_nested,
)
from lutumpy.doctor.wording import NO_TEXT, UNNAMED, as_object, as_text
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.blocks import CLOSED_BLOCKS, RESULT_TYPES
from lutumpy.rules.anthropic.limits import MAX_BREAKPOINTS, MAX_HISTORY_NAME
from lutumpy.rules.anthropic.messages import ROLES
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY, THINKING

_MESSAGE_KEYS = frozenset({"role", "content"})


def _block_path(problem: Problem) -> Path:
    """The block that a problem is in: of a message, or of a result."""
    path = problem.path
    return path[:5] if len(path) > 4 and path[3] == "content" else path[:3]


def _of_block(mend: Callable[[Editor, Problem, Path, dict[str, Any]], None]) -> Mender:
    """A mender of the block that a problem is in, as far as there is one."""

    def mender(editor: Editor, problem: Problem) -> None:
        path = _block_path(problem)
        block = editor.get(path)
        if isinstance(block, dict):
            mend(editor, problem, path, block)

    return mender


def _role(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    if mend_role_name(editor, problem, ROLES):
        return
    message = editor.get(path)
    content = message.get("content") if isinstance(message, dict) else None
    kinds = (
        {str(block.get("type")) for block in content if isinstance(block, dict)}
        if isinstance(content, list)
        else set()
    )
    if "tool_result" in kinds and "tool_use" not in kinds:
        role, sign = "user", "results"
    elif "tool_use" in kinds and "tool_result" not in kinds:
        role, sign = "assistant", "calls"
    elif kinds & set(ASSISTANT_ONLY) and "tool_result" not in kinds:
        role, sign = "assistant", "the model's reasoning or calls"
    else:
        return
    editor.put((*path, "role"), role)
    editor.done(
        "set_role",
        problem,
        f"The role is missing or unknown; a message with {sign} is of the role {role!r}.",
    )


def _message(editor: Editor, problem: Problem) -> None:
    if not isinstance(editor.get(problem.path[:1]), dict):
        mend_entry(editor, problem, lambda entry: entry.get("role") in ROLES)
    else:
        drop_key(editor, problem, _MESSAGE_KEYS, problem.path[:1])


def _content(editor: Editor, problem: Problem) -> None:
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict) or isinstance(message.get("content"), (str, list)):
        return
    content = message.get("content")
    if content is None or content == {}:
        drop_entry(
            editor, path, problem, "drop_empty", "The message has no content; it is left out."
        )
    elif isinstance(content, dict) and isinstance(content.get("type"), str):
        editor.put((*path, "content"), [content])
        editor.done(
            "set_content",
            problem,
            "The content is one block without a list around it; the list is added.",
        )
    else:
        editor.put((*path, "content"), as_text(content))
        editor.done(
            "set_content",
            problem,
            "The content is neither text nor blocks; it is written as JSON text.",
        )


def _block(editor: Editor, problem: Problem) -> None:
    path = _block_path(problem)
    block = editor.get(path)
    if isinstance(block, str) and block:
        editor.expect(path)
        editor.set_entry(path, {"type": "text", "text": block})
        editor.done("set_content", problem, "A bare text among the blocks becomes a text block.")
    elif not isinstance(block, dict):
        drop_entry(
            editor,
            path,
            problem,
            "drop_empty",
            "What stands among the blocks is none; it is left out.",
        )
    elif isinstance(block.get("text"), str) and block.get("type") in (
        None,
        "input_text",
        "output_text",
    ):
        editor.expect((*path, "text"))
        editor.put((*path, "type"), "text")
        editor.done(
            "set_content", problem, "A text stands here as a block of type 'text', with this API."
        )
    else:
        is_models = len(path) == 3 and editor.get((path[0], "role")) == "assistant"
        mend_foreign_part("anthropic_messages", editor, problem, path, assistant=is_models)


def _block_keys(editor: Editor, problem: Problem) -> None:
    path = _block_path(problem)
    block = editor.get(path)
    known = CLOSED_BLOCKS.get(str(block.get("type"))) if isinstance(block, dict) else None
    if known is not None:
        drop_key(editor, problem, known, path)


@_of_block
def _text(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    value = block.get("text")
    if value is None or value == "":
        drop_entry(
            editor,
            path,
            problem,
            "drop_empty",
            "The text block is empty, and the API refuses that; it is left out.",
        )
    elif not isinstance(value, str):
        editor.put((*path, "text"), as_text(value))
        editor.done(
            "set_content", problem, "The block's text is no text; it is written as JSON text."
        )


def _thinking_block(editor: Editor, problem: Problem) -> None:
    reason = "Reasoning without its text or its signature is none of this API's; it is left out."
    drop_entry(editor, _block_path(problem), problem, "drop_reasoning", reason)


# --------------------------------------------------------- calls and results


@_of_block
def _input(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    editor.expect_keys(path, "id")
    editor.put((*path, "input"), as_object(block.get("input")))
    editor.done(
        "wrap_arguments",
        problem,
        "The input has to be an object with this API; it is read if it is the JSON of one, else kept inside one.",
    )


@_of_block
def _name(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    name = block.get("name")
    new = name[:MAX_HISTORY_NAME] if isinstance(name, str) and name else UNNAMED
    editor.expect_keys(path, "id")
    editor.put((*path, "name"), new)
    editor.done(
        "rename_tool",
        problem,
        f"The API refuses this name of a tool in a history; it is {new!r} instead.",
    )


@_of_block
def _is_error(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    value = block.get("is_error")
    editor.expect_keys(path, "tool_use_id")
    if value is None:
        editor.remove_key((*path, "is_error"))
    else:
        editor.put(
            (*path, "is_error"), value.lower() == "true" if isinstance(value, str) else bool(value)
        )
    editor.done(
        "set_field", problem, "`is_error` is true or false; this value is read as one of them."
    )


@_of_block
def _result_content(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    content = block.get("content")
    editor.expect_keys(path, "tool_use_id")
    if content is None:
        editor.remove_key((*path, "content"))
    elif isinstance(content, dict) and content.get("type") in RESULT_TYPES:
        editor.put((*path, "content"), [content])
    else:
        editor.put((*path, "content"), as_text(content))
    editor.done(
        "set_content",
        problem,
        "A result's content is text or a list of blocks; it is written as one of them.",
    )


def _empty_error(editor: Editor, problem: Problem) -> None:
    path = problem.path[:3]
    editor.expect_keys(path, "tool_use_id", "is_error")
    editor.put((*path, "content"), NO_TEXT)
    editor.done("set_content", problem, "A result that is an error has to say something.")


def _error_content(editor: Editor, problem: Problem) -> None:
    """An error takes text only: what else it shows goes behind the results of its message."""
    path = problem.path[:3]
    parts = editor.get((*path, "content"))
    if not isinstance(parts, list):
        return
    others = [
        number
        for number, part in enumerate(parts)
        if isinstance(part, dict) and part.get("type") in RESULT_TYPES and part["type"] != "text"
    ]
    if not others:
        return
    editor.expect_keys(path, "tool_use_id", "is_error")
    if len(others) == len(parts):
        editor.insert(
            (*path, "content", 0), {"type": "text", "text": f"{NO_TEXT} See below the results."}
        )
    for number in others:
        editor.move((*path, "content", number), editor.end(path[:2]))
    editor.done(
        "move_content",
        problem,
        "A result that is an error takes text only; the rest goes behind the results.",
    )


def _toolset_name(editor: Editor, problem: Problem) -> None:
    path = problem.path[:3]
    wanted: Any = None
    for turn in Conversation(editor).turns[::-1]:
        if turn.first < int(path[0]) and turn.role == "assistant":
            wanted = next(
                (
                    b.get("toolset_name")
                    for _, b in turn.of("tool_use")
                    if b.get("id") in problem.call_ids
                ),
                None,
            )
            break
    if isinstance(wanted, str):
        editor.expect_keys(path, "tool_use_id")
        editor.put((*path, "toolset_name"), wanted)
        editor.done("set_field", problem, "A result names the toolset that its call named.")


def _server_block(editor: Editor, problem: Problem) -> None:
    path = problem.path[:3]
    block = editor.get(path)
    is_result = isinstance(block, dict) and "tool_use_id" in block
    reason = (
        "The provider's tool call that this result answers isn't there; the result is left out."
        if is_result
        else "The provider's tool never answered this call, and the conversation has gone on; the call is left out."
    )
    drop_entry(editor, path, problem, "drop_result" if is_result else "drop_call", reason)


# ---------------------------------------------------------- turns and their end


def _thinking_last(editor: Editor, problems: list[Problem]) -> None:
    conversation = Conversation(editor)
    for problem in problems:
        index = message_index(problem)
        turn = conversation.at(index) if index is not None else None
        reason = (
            "Reasoning has lost what it led to: it can't be the last of a message; it is left out."
        )
        for path, block in reversed(turn.blocks if turn is not None else []):
            if block.get("type") not in THINKING:
                break
            drop_entry(editor, path, problem, "drop_reasoning", reason)


def _thinking_disabled(editor: Editor, problem: Problem) -> None:
    reason = (
        "Without `thinking` in the request the last message can't hold reasoning; it is left out."
    )
    drop_entry(editor, problem.path[:3], problem, "drop_reasoning", reason)


def _empty_user(editor: Editor, problem: Problem) -> None:
    index = message_index(problem)
    while (
        index is not None
        and isinstance(message := editor.get((index,)), dict)
        and message.get("role") == "user"
    ):
        drop_entry(
            editor,
            (index,),
            problem,
            "drop_empty",
            "The message says nothing, which the API refuses; it is left out.",
        )
        index += 1


def _system_as_user(editor: Editor, problem: Problem) -> None:
    """Instructions where the API takes none: as a user's message, marked, which is how requests of this library do it."""
    path = problem.path[:1]
    message = editor.get(path)
    if not isinstance(message, dict):
        return
    content = message.get("content")
    if isinstance(content, str):
        editor.put((*path, "content"), _marked(content))
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            editor.put((*path, "content", number, "text"), _marked(block["text"]))
    editor.put((*path, "role"), "user")
    editor.done(
        "set_role",
        problem,
        "The API takes no system message here; it becomes a marked message of the user's.",
    )


def _marked(text: str) -> str:
    return f"<system>\n{text}\n</system>"


def _system_position(editor: Editor, problems: list[Problem]) -> None:
    """Instructions between two messages of the user's go behind the second."""
    roles = [
        message.get("role") if isinstance(message, dict) else None for message in editor.document
    ]
    for problem, index in placed(problems):
        end = index
        while end < len(roles) and roles[end] != "assistant":
            end += 1
        at = index
        while at < len(roles) and roles[at] == "system":
            editor.expect((at, "role"))
            editor.move((at,), (end,))
            at += 1
        reason = "A system message stands before an assistant message or at the end; it is moved behind what the user says."
        editor.done("move_message", problem, reason)


def _prefill_whitespace(editor: Editor, problem: Problem) -> None:
    path: Path = (*problem.path[:1], "content")
    content = editor.get(path)
    if isinstance(content, list) and content:
        path = (*path, len(content) - 1, "text")
        content = editor.get(path)
    if isinstance(content, str) and content != content.rstrip():
        editor.put(path, content.rstrip())
        editor.done(
            "set_content", problem, "The last message can't end in white space; it is cut off."
        )


def _cache_controls(editor: Editor, problems: list[Problem]) -> None:
    """What is no mark goes, and what is wrong in one; the last four marks are the useful ones, those before them go."""
    counted = [problem for problem in problems if not problem.path]
    for problem in problems:
        if message_index(problem) is None or editor.get(problem.path) is None:
            continue
        is_lifetime = problem.path[-1] == "ttl"
        editor.remove_key(problem.path)
        reason = (
            "A mark can't last so long, or longer than one before it; it gets the usual lifetime."
            if is_lifetime
            else "The API doesn't know such a mark for the cache; it is left out."
        )
        editor.done("drop_key", problem, reason)
    if not counted:
        return
    places: list[Path] = []
    for turn in Conversation(editor).turns:
        for path, block in turn.blocks:
            places.append(path)
            inner = block.get("content")
            for number, part in enumerate(
                inner if isinstance(inner, list) and len(path) == 3 else ()
            ):
                if isinstance(part, dict):
                    places.append((*path, "content", number))
    marked = [p for p in places if len(p) > 2 and editor.get((*p, "cache_control")) is not None]
    outside = sum(
        1
        for block in editor.outside
        if isinstance(block, dict) and block.get("cache_control") is not None
    )
    for path in marked[: max(0, len(marked) + outside - MAX_BREAKPOINTS)]:
        editor.remove_key((*path, "cache_control"))
        reason = f"A request takes {MAX_BREAKPOINTS} of these marks; the first ones are left out."
        editor.done("drop_key", counted[0], reason)


def _stage(**menders: Any) -> tuple[frozenset[str], Stage]:
    named = {f"anthropic.{name}": mender for name, mender in menders.items()}
    return frozenset(named), each(named)


def _rules(*names: str) -> frozenset[str]:
    return frozenset([f"anthropic.{name}" for name in names])


STAGES: tuple[tuple[frozenset[str], Stage], ...] = (
    _stage(nesting=write_nested),
    _stage(encoding=replace_characters),
    _stage(role=_role, messages=_message),
    _stage(content=_content),
    _stage(block=_block),
    _stage(block_keys=_block_keys, text=_text, thinking_block=_thinking_block),
    _stage(
        tool_use_input=_input,
        tool_use_name=_name,
        is_error=_is_error,
        result_content=_result_content,
    ),
    _stage(empty_text=_text),
    _stage(empty_error=_empty_error, error_content=_error_content),
    (_rules("tool_use_id", "server_id"), mend_ids),
    (_rules("unique_ids"), mend_repeats),
    _stage(system_first=_system_as_user, system_for_model=_system_as_user),
    (_rules("system_position"), _system_position),
    _stage(image_type=mend_block, document_type=mend_block),
    (_rules("block_role"), mend_shown),
    (_rules("block_role"), mend_roles),
    (
        _rules(
            "results_after_uses", "results_first", "use_for_result", "single_result", "block_role"
        ),
        mend_pairing,
    ),
    _stage(
        use_for_server_result=_server_block,
        mixed_turn_results_only=_server_block,
        server_result_missing=_server_block,
    ),
    (_rules("uses_last"), mend_uses_last),
    (_rules("thinking_first"), mend_thinking_first),
    (_rules("thinking_last"), _thinking_last),
    _stage(thinking_disabled=_thinking_disabled),
    _stage(empty_user=_empty_user),
    (_rules("cache_control"), _cache_controls),
    _stage(prefill_whitespace=_prefill_whitespace, toolset_name=_toolset_name),
    (_rules("reused_id"), mend_repeats),
    (_rules("result_order"), mend_order),
)
"""What is mended first, and so on: each pass mends one stage, and the next one sees the messages as they are then."""
