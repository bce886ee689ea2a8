"""OpenAI's shell, patches and computer: their inputs and results."""

# What is hard here
# -----------------
# OpenAI calls its tools by items of their own: a `shell_call` has no name and no arguments, but an
# `action`. The adapter reads what such a call wants as its arguments (`adapters/unknown_calls.py`),
# and a round gives it to the tool that has the name which the kind says, if that tool is declared
# by a type of the provider. Results go back in the form that answers the kind of the call
# (`adapters/openai/responses/outputs.py`): what of it is more than a text or a picture is in
# JSON that only these classes write.
#
# A provider's newer models may say more than the fields below. Further fields are kept, and no
# reason to refuse a call.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lutumpy import ToolInput, tool_input
from lutumpy.models import ImagePart, TextPart
from lutumpy.plain import json_values

__all__ = [
    "ApplyPatch",
    "Click",
    "Computer",
    "ComputerOutput",
    "DoubleClick",
    "Drag",
    "Keypress",
    "LocalShell",
    "Move",
    "Point",
    "SafetyCheck",
    "Screenshot",
    "Scroll",
    "Shell",
    "ShellExit",
    "ShellOutput",
    "ShellResult",
    "ShellTimeout",
    "TypeText",
    "Wait",
    "computer_output",
]


_OPENAI = "openai_responses"


class _Kept(BaseModel):
    """A part of an input. Further fields are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", use_attribute_docstrings=True)


# --- OpenAI: shell --------------------------------------------------------------------------------


class ShellExit(BaseModel):
    """A command ended.

    Attributes:
        type: Always `"exit"`.
        exit_code: The exit code of the command.
    """

    type: Literal["exit"] = "exit"
    exit_code: int


class ShellTimeout(BaseModel):
    """A command took too long and was stopped.

    Attributes:
        type: Always `"timeout"`.
    """

    type: Literal["timeout"] = "timeout"


class ShellOutput(BaseModel):
    """What one command wrote, and how it ended.

    Attributes:
        stdout: What it wrote.
        stderr: What it wrote as errors.
        outcome: How it ended; by default well.
    """

    stdout: str = ""
    stderr: str = ""
    outcome: Union[ShellExit, ShellTimeout] = Field(default=ShellExit(exit_code=0))


class ShellResult(BaseModel):
    """The result of a `Shell` call.

    Attributes:
        output: An entry for each command that ran, in their order.
        max_output_length: That of the call, if it had one: OpenAI wants it back.
    """

    output: list[ShellOutput]
    max_output_length: Union[int, None] = None


@tool_input(
    name="shell",
    output=ShellResult,
    provider={_OPENAI: {"type": "shell", "environment": {"type": "local"}}},
)
class Shell(ToolInput[ShellResult]):
    """Run commands in a shell, each in a process of its own."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    commands: list[str]
    """The commands, which may run beside each other."""
    timeout_ms: Union[int, None] = None
    """For how long they may run together, in milliseconds."""
    max_output_length: Union[int, None] = None
    """How many characters of output the model wants at most."""


@tool_input(name="local_shell", output=str, provider={_OPENAI: {"type": "local_shell"}})
class LocalShell(ToolInput[str]):
    """Run a program. OpenAI's older tool, for `codex-mini`; `Shell` is the one for new models."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    command: list[str]
    """The program and its arguments."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables."""
    timeout_ms: Union[int, None] = None
    """For how long it may run, in milliseconds."""
    user: Union[str, None] = None
    """As which user."""
    working_directory: Union[str, None] = None
    """In which folder."""


# --- OpenAI: patches ------------------------------------------------------------------------------


@tool_input(name="apply_patch", output=str, provider={_OPENAI: {"type": "apply_patch"}})
class ApplyPatch(ToolInput[str]):
    """Create, change or delete a file. The result is a text; a `ToolError` says that it failed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Literal["create_file", "update_file", "delete_file"]
    """What is done."""
    path: str
    """The file, relative to the folder that is worked in. It is the model's: check that it stays
    there."""
    diff: Union[str, None] = None
    """The change in the V4A format; the whole content of a file that is created. Nothing for one
    that is deleted."""


# --- OpenAI: the computer -------------------------------------------------------------------------


class Point(_Kept):
    """A place on the screen.

    Attributes:
        x: Pixels from the left.
        y: Pixels from the top.
    """

    x: int
    y: int


class Click(Point):
    """Press a button of the mouse.

    Attributes:
        type: Always `"click"`.
        button: Which one.
        keys: Keys that are held.
    """

    type: Literal["click"]
    button: Literal["left", "right", "wheel", "back", "forward"]
    keys: Union[list[str], None] = None


class DoubleClick(Point):
    """Press the left button twice.

    Attributes:
        type: Always `"double_click"`.
        keys: Keys that are held.
    """

    type: Literal["double_click"]
    keys: Union[list[str], None] = None


class Drag(_Kept):
    """Move the mouse along a way with its button pressed.

    Attributes:
        type: Always `"drag"`.
        path: The way.
        keys: Keys that are held.
    """

    type: Literal["drag"]
    path: list[Point]
    keys: Union[list[str], None] = None


class Keypress(_Kept):
    """Press keys together.

    Attributes:
        type: Always `"keypress"`.
        keys: The keys.
    """

    type: Literal["keypress"]
    keys: list[str]


class Move(Point):
    """Move the mouse.

    Attributes:
        type: Always `"move"`.
        keys: Keys that are held.
    """

    type: Literal["move"]
    keys: Union[list[str], None] = None


class Screenshot(_Kept):
    """Look at the screen.

    Attributes:
        type: Always `"screenshot"`.
    """

    type: Literal["screenshot"]


class Scroll(Point):
    """Scroll at a place.

    Attributes:
        type: Always `"scroll"`.
        scroll_x: Pixels to the right.
        scroll_y: Pixels down.
        keys: Keys that are held.
    """

    type: Literal["scroll"]
    scroll_x: int
    scroll_y: int
    keys: Union[list[str], None] = None


class TypeText(_Kept):
    """Type a text.

    Attributes:
        type: Always `"type"`.
        text: The text.
    """

    type: Literal["type"]
    text: str


class Wait(_Kept):
    """Wait for a moment.

    Attributes:
        type: Always `"wait"`.
    """

    type: Literal["wait"]


Action: TypeAlias = Annotated[
    Union[Click, DoubleClick, Drag, Keypress, Move, Screenshot, Scroll, TypeText, Wait],
    Field(discriminator="type"),
]


class SafetyCheck(_Kept):
    """A doubt of OpenAI's about an action, which a person should decide.

    Attributes:
        id: Its id, by which it is acknowledged.
        code: Its kind.
        message: What it says.
    """

    id: str
    code: Union[str, None] = None
    message: Union[str, None] = None


ComputerOutput: TypeAlias = Union[ImagePart, list[Union[ImagePart, TextPart]]]
"""A picture of the screen after the actions, and what `computer_output` adds to it."""


@tool_input(name="computer", output=ComputerOutput, provider={_OPENAI: {"type": "computer"}})
class Computer(ToolInput[ComputerOutput]):
    """Act on a screen. The result is a picture of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    actions: list[Action]
    """What is done, in this order. Of models that do one thing at a time it is that."""
    pending_safety_checks: list[SafetyCheck] = Field(default_factory=list)
    """What a person should confirm first; `computer_output` says that it was."""

    @model_validator(mode="before")
    @classmethod
    def _take_one_action(cls, value: Any) -> Any:
        return {"actions": [value]} if isinstance(value, dict) and "type" in value else value


def computer_output(
    picture: ImagePart, acknowledged: Sequence[SafetyCheck] = ()
) -> list[Union[ImagePart, TextPart]]:
    """The output of a `Computer` call whose safety checks somebody has confirmed.

    Args:
        picture: The screen after the actions.
        acknowledged: The checks of the call that were confirmed. OpenAI goes on only if all are.
    """
    if not acknowledged:
        return [picture]
    checks = [check.model_dump(exclude_none=True) for check in acknowledged]
    note = json_values.encode_text({"acknowledged_safety_checks": checks})
    return [picture, TextPart(note)]
