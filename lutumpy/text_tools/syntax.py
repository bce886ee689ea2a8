"""How calls are written: the tags, and the form of the text between them."""

from __future__ import annotations

import re
from collections.abc import Collection

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.tag_search import end_of

__all__ = ["HERMES", "LLAMA_FUNCTION", "LLAMA_PYTHON_TAG", "MISTRAL", "TOOL_CALL", "CallSyntax"]

_NAME = re.compile(r"[\w.:-]*")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """One way to write calls.

    Attributes:
        start: The tag before a call. Not part of the text that the user sees.
        ends: The tags that may end it; the instruction names the first.
        arguments_key: The key of the arguments in the instruction; `args`, `arguments` and
            `parameters` are all read.
        json_calls: A call is an object with `name` and arguments, or an array of such objects.
        name_end: The text between a bare name and the object of arguments, as in
            `name[ARGS]{...}`; `None` where no call is written so.
        call_id: The text before the model's own id of a call, between the bare name and
            `name_end`. That id is not used.
        separator: The text between two calls that share one start tag.
        self_ending: The end of the JSON is the end of the call; a tag in `ends` that follows it is
            left out of the text.
        around: Tags around calls, which aren't shown.
        fenced: A Markdown fence may be around the arguments of a bare name.
        name_prefix: The text before a bare name that isn't part of it, where a model writes one.
        text_name: A bare name that is followed by text of the answer, not by a call.
        counted: A bare name may end in `:0`, the place of the call, which isn't part of it.
        opened: The prompt ends with the start tag, so that an answer begins behind it. Its first
            line is then `text_name`, or the name of a tool that is offered, with arguments below.

    Raises:
        ValueError: the tags can't be told from the JSON between them.
    """

    start: str
    ends: tuple[str, ...] = ()
    arguments_key: str = "args"
    json_calls: bool = True
    name_end: str | None = None
    call_id: str | None = None
    separator: str | None = None
    self_ending: bool = False
    around: tuple[str, ...] = ()
    fenced: bool = False
    name_prefix: str = ""
    text_name: str = ""
    counted: bool = False
    opened: bool = False

    def __post_init__(self) -> None:
        for tag in (self.start, *self.ends, *self.around):
            _check_tag(tag)
        if not self.ends and not self.self_ending:
            raise ValueError(f"the tag {self.start!r} needs an end tag")
        if self.start in self.ends:
            raise ValueError(f"{self.start!r} can't be both start and end tag")

    @property
    def tags(self) -> tuple[str, str]:
        """The tags before and behind a call; the second may be empty."""
        return self.start, "" if self.self_ending or not self.ends else self.ends[0]

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts around a call and in it by which it is told from other text."""
        texts = (self.start, *self.ends, self.name_end or "", self.call_id or "")
        return tuple([text for text in texts if text.strip()])

    def clean_name(self, written: str) -> str:
        """A bare name as a model wrote it, without what is around the name of the tool."""
        name = written.removeprefix(self.name_prefix)
        if self.counted:
            before, colon, count = name.rpartition(":")
            if colon and count.isdecimal():
                return before
        return name

    def begins_arguments(self, char: str) -> bool:
        """Whether arguments may follow a name directly.

        They do behind a line break, and in Mistral's template without `[ARGS]`.
        """
        if self.fenced and char in "`~":
            return True
        ends_with_line = self.name_end is not None and self.name_end.isspace()
        return char == "{" and (self.json_calls or ends_with_line)

    def begins_named(self, text: str, tools: Collection[str]) -> bool | None:
        """Whether a text begins like what comes behind the start tag and a bare name.

        Args:
            text: The text.
            tools: The names of the tools that are offered.

        Returns:
            Whether its first line is `text_name`, or one of the names with arguments below; `None`
            for a text that may go on so.
        """
        name = text[: end_of(_NAME, text, 0)]
        behind = text[len(name) :]
        if not behind:
            return None if any(one.startswith(name) for one in (self.text_name, *tools)) else False
        is_text = bool(name) and name == self.text_name
        line, newline, below = behind.partition("\n")
        if line.strip() or not (is_text or self.clean_name(name) in tools):
            return False
        if not newline or not (is_text or below.strip()):
            return None
        return is_text or below.lstrip().startswith("{")

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        start, end = self.tags
        if self.name_end is not None:
            if self.fenced:
                arguments = f"```json\n{arguments}\n```"
            written = f"{self.name_prefix}{name}{':0' if self.counted else ''}"
            if start.endswith(":"):  # a heading: each stands on a line of its own
                return f"{start} {written}\n{self.name_end} {arguments}"
            return f"{start}{written}{self.name_end}{arguments}{end}"
        # `<tool_call>` stands on lines of its own where models were trained on it.
        line = "\n" if start.startswith("<") and end else ""
        return f'{start}{line}{{"name": "{name}", "{self.arguments_key}": {arguments}}}{line}{end}'


def _check_tag(tag: str) -> None:
    if not tag or tag.isspace():
        raise ValueError("a tag needs characters")
    if tag != tag.strip():
        raise ValueError(
            f"the tag {tag!r} begins or ends with white space, which models don't keep to"
        )
    if any(char in '"\\{}`~\n' for char in tag) or tag[0] in "-+.,:0123456789":
        raise ValueError(f"the tag {tag!r} holds characters that JSON or Markdown fences need")


TOOL_CALL = CallSyntax("[TOOL_CALL]", ("[/TOOL_CALL]",))
HERMES = CallSyntax("<tool_call>", ("</tool_call>",), arguments_key="arguments")
MISTRAL = CallSyntax(
    "[TOOL_CALLS]",
    ("</s>",),
    arguments_key="arguments",
    name_end="[ARGS]",
    call_id="[CALL_ID]",
    self_ending=True,
)
LLAMA_FUNCTION = CallSyntax(
    "<function=", ("</function>",), arguments_key="parameters", json_calls=False, name_end=">"
)
LLAMA_PYTHON_TAG = CallSyntax(
    "<|python_tag|>",
    ("<|eom_id|>", "<|eot_id|>"),
    arguments_key="parameters",
    separator=";",
    self_ending=True,
)
