"""Tools that OpenAI and Anthropic have typed and your program runs: their inputs and results.

Each class is a tool by `tool(...)`, as any input class. To its own provider it is declared by the
type that the provider trained its models on; to every other API it is an ordinary function of the
same input. Nothing here runs anything: a shell, a patch, a picture of a screen are your program's,
and hooks see each call before it runs.

Opt-in: nothing else in lutumpy imports this module.
"""

from __future__ import annotations

from lutumpy.provider_tools.anthropic import Bash, ClaudeComputer, Memory, TextEditor
from lutumpy.provider_tools.openai import (
    ApplyPatch,
    Click,
    Computer,
    ComputerOutput,
    DoubleClick,
    Drag,
    Keypress,
    LocalShell,
    Move,
    Point,
    SafetyCheck,
    Screenshot,
    Scroll,
    Shell,
    ShellExit,
    ShellOutput,
    ShellResult,
    ShellTimeout,
    TypeText,
    Wait,
    computer_output,
)

__all__ = [
    "ApplyPatch",
    "Bash",
    "ClaudeComputer",
    "Click",
    "Computer",
    "ComputerOutput",
    "DoubleClick",
    "Drag",
    "Keypress",
    "LocalShell",
    "Memory",
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
    "TextEditor",
    "TypeText",
    "Wait",
    "computer_output",
]
