"""Calls written as Python: `[weather(city="Oslo", days=2)]`, literals only."""

# The text is parsed by `ast` and never run. `ast.parse` warns of odd escapes and numbers, and
# warnings can't be silenced for one thread alone, so the text goes through a tokenizer first: it
# takes what literals and calls need, doubles a backslash that Python doesn't know, and finds where
# the last complete call ends.

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools

__all__ = ["BARE_PYTHON", "PythonSyntax"]

_TOKEN = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<text>'''(?:[^\\']|\\[\s\S]|'(?!''))*'''|\"\"\"(?:[^\\\"]|\\[\s\S]|\"(?!\"\"))*\"\"\""
    r"|'(?:[^\\'\n]|\\[\s\S])*'|\"(?:[^\\\"\n]|\\[\s\S])*\")"
    r"|(?P<number>(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<name>[^\W\d]\w*(?![\w'\"]))"
    r"|(?P<mark>[\[\](){}:,=.;+-])"
)
_ESCAPE = re.compile(r"\\([\s\S])")
_KNOWN_ESCAPES = frozenset("\n\\'\"abfnrtv")
_HEX_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00[0-9a-fA-F]{6}|0)(?![0-7])")
# What may be behind the last complete call of a text that was cut: a call that has begun.
_NEXT_CALL = re.compile(r"[\s,;\[\]]*(?:([^\W\d][\w.]*)\s*(?=\(|\Z)|\Z)")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_MOST_LEVELS = 60  # `ast` and the interpreter's own parser are safe to this depth


class _NotCalls(Exception):
    """What is wrong with a text, in words for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSyntax(BodySyntax):
    """One way to write calls as Python.

    Attributes:
        in_list: The calls are in a list; otherwise each stands on a line of its own. Both are
            read.
    """

    in_list: bool = True
    escapes: bool = True

    @property
    def rule(self) -> str:
        """How an instruction says to write the arguments."""
        return (
            "in place of the argument shown those of the tool, each with its name and a Python "
            "literal that fits its JSON Schema"
        )

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """Python's own."""
        return {"'": "'", '"': '"'}

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        try:
            values = json_values.decode(arguments)
        except (ValueError, RecursionError):
            values = {}
        members = values.items() if isinstance(values, dict) else ()
        call = f"{name}({', '.join([f'{key}={_spell(value)}' for key, value in members])})"
        start, end = self.tags
        line = "" if self.in_list or not start else "\n"
        return f"{start}{line}{f'[{call}]' if self.in_list else call}{line}{end}"

    def begins(self, text: str, tools: KnownTools) -> bool:
        """Whether a list of calls of offered tools begins here."""
        found = re.match(r"\s*\[\s*([\w.]+)\s*\(", text)
        return found is not None and found.group(1) in tools

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The calls in the text of a block."""
        is_bare = not self.start
        try:
            source, complete = _tokenize(body, whole=whole)
            calls = [_read_call(node) for node in _call_nodes(source)]
        except _NotCalls as error:
            return (
                None if is_bare else [self.unreadable(_first_name(body), body.strip(), str(error))]
            )
        if is_bare and any(call.name not in tools for call in calls):
            return None
        rest = body[complete:].strip()
        begun = _NEXT_CALL.match(rest)
        if begun is not None and begun.group(1):
            calls.append(self.cut(begun.group(1), begun.group(1) + rest[begun.end() :]))
        elif begun is None:
            calls = self.end_with_rest(calls, rest)
        if not calls and not whole and not body.strip():
            return [self.cut("", "")]
        return calls


def _tokenize(body: str, *, whole: bool) -> tuple[str, int]:
    """The text with escapes that Python knows, and where what is complete of it ends.

    Raises:
        _NotCalls: it holds what no literal needs.
    """
    pieces: list[str] = []
    stack: list[str] = []
    pos = 0
    # Behind the last call that is complete: the pieces up to there, and the place.
    kept, complete = 0, 0
    base = 0
    while pos < len(body):
        found = _TOKEN.match(body, pos)
        if found is None:
            if not whole:
                break
            raise _NotCalls(f"{body[pos : pos + 20]!r} is neither a call nor a literal")
        token = found.group()
        pos = found.end()
        if found.lastgroup == "text":
            token = _escape(token)
        elif found.lastgroup == "mark":
            if token in "[({":
                if token == "[" and not stack and not base:
                    base = 1
                stack.append(token)
                if len(stack) > _MOST_LEVELS:
                    raise _NotCalls("it is nested too deep")
            elif token in "])}" and (not stack or "[({".index(stack.pop()) != "])}".index(token)):
                raise _NotCalls(f"a bracket too many before {body[pos : pos + 20]!r}")
        pieces.append(token)
        if found.lastgroup == "mark" and token in ")]" and len(stack) <= base:
            kept, complete = len(pieces), pos
    if whole or not stack:
        if stack:
            raise _NotCalls("a bracket is missing")
        return "".join(pieces), pos
    is_in_list = bool(base) and stack[0] == "["
    return "".join(pieces[:kept]) + ("]" if is_in_list and kept else ""), complete


def _escape(token: str) -> str:
    """A string token in which every backslash is of a known escape."""
    if "\\" not in token:
        return token

    def keep(found: re.Match[str]) -> str:
        if found.group(1) in _KNOWN_ESCAPES or _HEX_ESCAPE.match(token, found.start()):
            return found.group()
        return "\\" + found.group()

    return _ESCAPE.sub(keep, token)


def _call_nodes(source: str) -> list[ast.Call]:
    lines = "\n".join([line.strip() for line in source.strip().splitlines()])
    # A line break in a text of three quotes is the only one that counts, and stripping its lines
    # would change it; so only where the text doesn't parse as it stands it is tried line by line.
    tree = _parse(source.strip()) or _parse(lines)
    if tree is None:
        raise _NotCalls("it is no call in Python")
    nodes: list[ast.Call] = []
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Expr) else None
        several = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        for node in several:
            if not isinstance(node, ast.Call):
                raise _NotCalls("something in it is no call")
            nodes.append(node)
    return nodes


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read_call(node: ast.Call) -> ParsedCall:
    name = _dotted_name(node.func)
    if node.args:
        raise _NotCalls(f"the arguments of {name} need their names")
    values: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in values:
            raise _NotCalls(f"the arguments of {name} are not each given once by name")
        values[keyword.arg] = _literal(keyword.value)
    return ParsedCall(name, json_values.encode_text(values) if values else "{}")


def _dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr}"
    raise _NotCalls("a call needs the name of a tool")


def _literal(node: ast.expr) -> Any:
    """The value of a literal that JSON can write."""
    if isinstance(node, ast.Constant):
        if node.value is None or isinstance(node.value, (str, bool, int)):
            return node.value
        if isinstance(node.value, float) and not json_values.holds_non_finite(node.value):
            return node.value
    elif isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    elif isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(one) for one in node.elts]
    elif isinstance(node, ast.Dict):
        members: dict[str, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            written = None if key is None else _literal(key)
            if not isinstance(written, str) or written in members:
                raise _NotCalls("the keys of a dictionary are different texts")
            members[written] = _literal(value)
        return members
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    raise _NotCalls("an argument is not a literal")


def _spell(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:  # too deep for a literal
        return json_values.encode_text(value)


def _first_name(body: str) -> str:
    found = re.search(r"([^\W\d][\w.]*)\s*\(", body[:200])
    return "" if found is None else found.group(1)


BARE_PYTHON = PythonSyntax(start="")
"""Calls that are written as they are, with no text before them."""
