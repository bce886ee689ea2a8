"""`ToolInput`: the base of input classes that name their output.

In a module of its own, since making a model loads a third of pydantic: it is imported when somebody
asks for it.
"""

from __future__ import annotations

from typing import ClassVar, Generic

from pydantic import BaseModel, ConfigDict
from typing_extensions import Self, TypeVar

from lutumpy.tools.tool import Tool, compiled_tool

__all__ = ["ToolInput"]

O = TypeVar("O")


class ToolInput(BaseModel, Generic[O]):
    """Base of input classes that name their output, under `@tool_input`.

    `class ReadFile(ToolInput[FileText])` is the input of a tool that returns a `FileText`. Strings
    under the fields become their descriptions. The type checker takes the output type from here.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def __tool__(cls) -> Tool[Self, O]:
        return Tool(compiled_tool(cls))
