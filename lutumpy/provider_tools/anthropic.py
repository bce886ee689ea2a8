"""Anthropic's bash, text editor, memory and computer: their inputs."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, Union

from pydantic import ConfigDict

from lutumpy import ToolInput, tool_input
from lutumpy.models import ImagePart, TextPart

__all__ = [
    "Bash",
    "ClaudeComputer",
    "Memory",
    "TextEditor",
]

_ANTHROPIC = "anthropic_messages"


@tool_input(name="bash", output=str, provider={_ANTHROPIC: {"type": "bash_20250124"}})
class Bash(ToolInput[str]):
    """Run a command in a shell that keeps its state between calls."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    command: Union[str, None] = None
    """The command; none where the shell is restarted."""
    restart: bool = False
    """Whether to begin anew."""


@tool_input(
    name="str_replace_based_edit_tool",
    output=str,
    provider={_ANTHROPIC: {"type": "text_editor_20250728"}},
)
class TextEditor(ToolInput[str]):
    """Look at a file, or change it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    command: Literal["view", "create", "str_replace", "insert"]
    """What is done."""
    path: str
    """The file or folder. It is the model's: check where it leads."""
    view_range: Union[list[int], None] = None
    """`view`: the first and the last line, from 1; -1 for the end."""
    file_text: Union[str, None] = None
    """`create`: the content."""
    old_str: Union[str, None] = None
    """`str_replace`: what is there, once."""
    new_str: Union[str, None] = None
    """`str_replace`: what is there afterwards."""
    insert_line: Union[int, None] = None
    """`insert`: behind which line, 0 for the beginning."""
    insert_text: Union[str, None] = None
    """`insert`: the lines."""


@tool_input(name="memory", output=str, provider={_ANTHROPIC: {"type": "memory_20250818"}})
class Memory(ToolInput[str]):
    """Read and write notes that outlive the conversation, as files below `/memories`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    """What is done."""
    path: Union[str, None] = None
    """The file or folder, but for `rename`. It is the model's: check that it stays below
    `/memories`."""
    view_range: Union[list[int], None] = None
    """`view`: the first and the last line, from 1; -1 for the end."""
    file_text: Union[str, None] = None
    """`create`: the content."""
    old_str: Union[str, None] = None
    """`str_replace`: what is there, once."""
    new_str: Union[str, None] = None
    """`str_replace`: what is there afterwards."""
    insert_line: Union[int, None] = None
    """`insert`: behind which line, 0 for the beginning."""
    insert_text: Union[str, None] = None
    """`insert`: the lines."""
    old_path: Union[str, None] = None
    """`rename`: from here."""
    new_path: Union[str, None] = None
    """`rename`: to here."""


ClaudeOutput: TypeAlias = Union[str, ImagePart, list[Union[ImagePart, TextPart]]]


@tool_input(
    name="computer",
    output=ClaudeOutput,
    provider={
        _ANTHROPIC: {
            "type": "computer_20251124",
            "display_width_px": 1024,
            "display_height_px": 768,
        }
    },
)
class ClaudeComputer(ToolInput[ClaudeOutput]):
    """Act on a screen. The result is a picture of it, or a text.

    The size of the screen is said by `tool(ClaudeComputer, provider={"anthropic_messages":
    {"display_width_px": ..., "display_height_px": ...}})`; it is 1024 by 768 otherwise."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    action: str
    """What is done."""
    coordinate: Union[list[int], None] = None
    """Where: pixels from the left and from the top."""
    start_coordinate: Union[list[int], None] = None
    """`left_click_drag`: from where."""
    text: Union[str, None] = None
    """What is typed, or which keys; for clicks and `scroll` the keys that are held."""
    scroll_direction: Union[str, None] = None
    """`scroll`: up, down, left or right."""
    scroll_amount: Union[int, None] = None
    """`scroll`: how many clicks of the wheel."""
    duration: Union[float, None] = None
    """`hold_key` and `wait`: seconds."""
    region: Union[list[int], None] = None
    """`zoom`: left, top, right and bottom in pixels."""
