"""The work is linear in what arrives, for hostile texts too (rule S3).

It is counted in characters looked at.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from each_case import each
from text_toolkit import Tools, answers, asked, call

from lutumpy import NeedsTools, ToolDef
from lutumpy.adapters.openai.history_encoder import HistoryEncoder
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import TagToolParser, TextTools, text_formats
from lutumpy.text_tools import action_syntax as action_module
from lutumpy.text_tools import block as block_module
from lutumpy.text_tools import body_block as body_module
from lutumpy.text_tools import escaped_syntax as escaped_module
from lutumpy.text_tools import guided_answer as guided_module
from lutumpy.text_tools import json_scanner as json_module
from lutumpy.text_tools import keyed_syntax as keyed_module
from lutumpy.text_tools import nested_syntax as nested_module
from lutumpy.text_tools import python_syntax as python_module
from lutumpy.text_tools import scanner as scanner_module
from lutumpy.text_tools import tag_search as tags_module
from lutumpy.text_tools import text_machine as machine_module
from lutumpy.text_tools import thinking as thinking_module
from lutumpy.text_tools import xml_syntax as xml_module
from lutumpy.text_tools.derived import DerivedItems
from lutumpy.text_tools.guided_answer import GuidedAnswers

A = '{"name": "a", "args": {"x": [1, "y"]}}'
HOSTILE = {
    "brackets": "[",
    "angles": "<",
    "backticks": "`",
    "backtick words": "`a ",
    "short fences": "``x",
    "fences": "```\n",
    "fence words": "```a b\n",
    "tildes": "~~~\n",
    "fenced calls": f"```\n[TOOL_CALL]{A}[/TOOL_CALL]\n```\n",
    "calls in one fence": f"[TOOL_CALL]{A}[/TOOL_CALL]\n",
    "start tags": "[TOOL_CALL]",
    "end tags": "[/TOOL_CALL]",
    "open calls": "[TOOL_CALL]{",
    "open strings": '[TOOL_CALL]"',
    "open strings in calls": '[TOOL_CALL]{"',
    "escaped quotes": '[TOOL_CALL]{"\\"',
    "half tags": "[TOOL_CALL",
    "half end tags": "[/TOOL_CALL",
    "arrays": "[TOOL_CALL][",
    "thoughts": "<think>",
    "half thoughts": "<think</think",
    "prose": "[TOOL_CALL] is ",
    "calls": f"[TOOL_CALL]{A}",
    "broken calls": '[TOOL_CALL]{"a" "b"}[/TOOL_CALL]',
    "spaces": " ",
    "lines": "\n",
    "members": '"a":1,',
    "elements": f"{A},",
    "objects": f"{A}\n",
    "arrays of calls": f"[{A}]",
    "thoughts and more": "<think>a </think> b",
    "escapes": "\\\\",
    "digits": "9",
}
PREFIXES = {
    "": "",
    "in a call": '[TOOL_CALL]{"name": "w", "args": {"t": "',
    "in an array": "[TOOL_CALL][",
    "in a fence": "```\n",
    "in an object": "[TOOL_CALL]{",
    "behind a call": f"[TOOL_CALL]{A}",
    "in thinking": "<think>x",
}


class Counting:
    """A pattern that counts how many characters it went over."""

    def __init__(self, pattern: re.Pattern[str], work: list[int]) -> None:
        self.pattern = pattern
        self.work = work

    def search(self, text: str, pos: int = 0) -> Any:
        return self._count(self.pattern.search(text, pos), text, pos)

    def match(self, text: str, pos: int = 0) -> Any:
        found = self.pattern.match(text, pos)
        self.work[0] += 1 if found is None else found.end() - pos + 1
        return found

    def fullmatch(self, text: str, pos: int = 0) -> Any:
        return self._count(self.pattern.fullmatch(text, pos), text, pos)

    def sub(self, new: Any, text: str) -> str:
        self.work[0] += len(text)
        return self.pattern.sub(new, text)

    def split(self, text: str) -> list[Any]:
        self.work[0] += len(text)
        return self.pattern.split(text)

    def _count(self, found: Any, text: str, pos: int) -> Any:
        self.work[0] += (len(text) if found is None else found.end()) - pos + 1
        return found


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters were looked at, joined to what was left over, or written again."""
    total = [0]
    for module in (
        block_module,
        json_module,
        scanner_module,
        guided_module,
        machine_module,
        thinking_module,
        action_module,
        body_module,
        escaped_module,
        keyed_module,
        nested_module,
        python_module,
        xml_module,
    ):
        for name, value in list(vars(module).items()):
            if isinstance(value, re.Pattern):
                monkeypatch.setattr(module, name, Counting(value, total))
    runs = {mark: Counting(pattern, total) for mark, pattern in scanner_module._RUNS.items()}
    monkeypatch.setattr(scanner_module, "_RUNS", runs)
    original = tags_module.TagSearch.__init__

    def init(self: Any, *args: Any) -> None:
        original(self, *args)
        self.search = Counting(self.search.__self__, total).search

    monkeypatch.setattr(tags_module.TagSearch, "__init__", init)
    for scanner in (
        scanner_module.TextScanner,
        guided_module.GuidedScanner,
        thinking_module._Splitter,
    ):
        run = scanner._run

        def counted(self: Any, text: str, *, final: bool, run: Any = run) -> None:
            total[0] += len(text)
            run(self, text, final=final)

        monkeypatch.setattr(scanner, "_run", counted)
    note = scanner_module.TextScanner._note_line

    def noted(self: Any, piece: str) -> None:
        total[0] += len(piece)
        note(self, piece)

    monkeypatch.setattr(scanner_module.TextScanner, "_note_line", noted)
    return total


def spent(work: list[int], make: Any, text: str, size: int) -> int:
    work[0] = 0
    formatter = make().stream_formatter()
    for pos in range(0, len(text), size):
        formatter.feed(text[pos : pos + size])
    formatter.flush()
    return work[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 1_000_000], ids=["letters", "pieces", "whole"])
@each("kind, prefix", product(HOSTILE, PREFIXES))
def test_s3_the_parser_is_linear(work: list[int], kind: str, prefix: str, size: int) -> None:
    unit = HOSTILE[kind]
    texts = [PREFIXES[prefix] + unit * (length // len(unit)) for length in (1_500, 3_000)]
    half, whole = (spent(work, TagToolParser, text, size) for text in texts)
    assert half >= len(texts[0])
    # A tag's length may be held back and looked at again with every piece.
    assert whole <= 2.2 * half + 500
    assert whole <= 40 * len(texts[1])


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 1_000_000], ids=["pieces", "whole"])
def test_s3_every_format_is_linear(work: list[int], size: int) -> None:
    definitions = [ToolDef("a", "", {"type": "object", "properties": {"x": {"type": "string"}}})]
    for one in text_formats():
        parser = TagToolParser.named(one.name)

        class Offered:
            """The parser, with the offer."""

            def stream_formatter(self, parser: TagToolParser = parser) -> Any:
                return parser.stream_formatter(definitions)

        call = one.syntaxes[0].spelled("a", '{"x": "y"}')
        start = one.syntaxes[0].start
        half = call[: len(call) // 2]
        for prefix, unit in (
            ("", call),
            ("", start or call[0]),
            ("", half),
            (half, "</parameter>"),
            (half, " "),
            (half, "'"),
            (half, call[-9:]),
            (start, "[{"),
            (start, "<"),
        ):
            few, many = (
                spent(work, Offered, prefix + unit * (length // len(unit)), size)
                for length in (1_000, 2_000)
            )
            assert many <= 2.3 * few + 1_000, (one.name, prefix, unit, few, many)


@pytest.mark.parametrize("size", [1, 7, 1_000_000], ids=["letters", "pieces", "whole"])
@each(
    "unit, prefix",
    product(
        [f"{A}, ", "\\ud83d", "\\n", "x", " ", "[", '"a":', "`", '", "text": "'],
        ["", '{"answer": "', '{"answer": [', '{"answer": ', '{"'],
    ),
)
def test_s3_guided_answers_are_linear(work: list[int], unit: str, prefix: str, size: int) -> None:
    half, whole = (
        spent(work, GuidedAnswers, prefix + unit * (n // len(unit)), size) for n in (1_500, 3_000)
    )
    assert whole <= 2.2 * half + 500
    assert whole <= 40 * 3_000


@pytest.mark.parametrize("ephemeral", [False, True])
def test_a_request_does_not_walk_the_conversation_again(
    monkeypatch: pytest.MonkeyPatch, ephemeral: bool
) -> None:
    """Every item is derived once, and encoded once, however long the conversation gets."""
    counts = {"derived": 0, "encoded": 0}

    def counting(cls: Any, key: str) -> None:
        add = cls.add

        def counted(self: Any, item: Any) -> None:
            counts[key] += 1
            add(self, item)

        monkeypatch.setattr(cls, "add", counted)

    counting(DerivedItems, "derived")
    counting(HistoryEncoder, "encoded")
    rounds = 60
    llm = TextTools(ScriptedModel([Reply(text=call("weather", {"city": "Oslo"}))] * rounds))
    session = asked()
    for k in range(rounds):
        if ephemeral:
            session.push_ephemeral_user(f"It is {k} o'clock.")
        outcome = session.text_turn(llm, tools=Tools).collect_sync()
        assert isinstance(outcome, NeedsTools)
        outcome.round.commit(session, answers(outcome.round))
    # Two items a round, and with an ephemeral those once more in the copy that it is in.
    most = (2 + 2 * ephemeral) * (rounds + 2)
    assert counts["derived"] <= most
    assert counts["encoded"] <= most
