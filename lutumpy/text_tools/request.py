"""The request to the inner model in place of one with tools, and how its answer is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import cast

from lutumpy import AssistantTurn, ToolDef, Transcript
from lutumpy.models import OutputSpec, ToolOffering, TurnOptions
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass
from lutumpy.text_tools.derived import DerivedItems
from lutumpy.text_tools.guided_answer import GuidedAnswers
from lutumpy.text_tools.guided_schema import guided_output
from lutumpy.text_tools.instruction import demands
from lutumpy.text_tools.missed_calls import MissedCalls
from lutumpy.text_tools.protocol import (
    OfferParser,
    ParsedCall,
    ParsedText,
    StreamFormatter,
    ToolCallParser,
    spell_call,
)
from lutumpy.text_tools.result_form import OWN_RESULTS, ResultForm
from lutumpy.text_tools.thinking import THINK, LeadingThinking
from lutumpy.text_tools.turn import text_turn
from lutumpy.text_tools.written_calls import cut_detail

__all__ = ["RequestMaker", "TextRequest"]

_MOST_KEPT = 16


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a request says for an offer.

    It refers to the objects that it was made for: their ids are its key in the cache, and can't be
    given to other objects while it is there.

    Attributes:
        offering: The offer.
        value: What a structured turn asks for.
        instruction: The text for the model.
        output: The schema that the endpoint is asked to hold the model to.
        missed_calls: Finds texts that look like a call; `None` in a structured turn that requires
            none, whose text is a value.
        definitions: The tools, as a parser is given them.
    """

    offering: ToolOffering
    value: OutputSpec | None
    instruction: str
    output: OutputSpec | None
    missed_calls: MissedCalls | None
    definitions: Sequence[ToolDef]


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request to the inner model.

    Attributes:
        transcript: The conversation as that model sees it.
        options: Its options.
        guided: The answer is read as a guided one.
        parse: Takes the text of the answer apart.
        formatter: Makes a formatter for a streamed answer.
        missed_calls: Finds texts that look like a call.
    """

    transcript: Transcript
    options: TurnOptions
    guided: bool
    parse: Callable[[str], ParsedText]
    formatter: Callable[[], StreamFormatter]
    missed_calls: MissedCalls | None = None

    def read(self, inner: AssistantTurn) -> AssistantTurn:
        """The turn of a session for the inner model's answer."""
        parsed = self.parse(inner.text)
        hinted = False
        if self.missed_calls is not None and not parsed.format_errors and _is_whole(inner):
            missed = self.missed_calls.find(parsed)
            if missed is not None:
                hinted = True
                parsed = replace(parsed, calls=(*parsed.calls, missed))
        if parsed.calls and parsed.calls[-1].open_ended and not _is_whole(inner):
            parsed = replace(parsed, calls=(*parsed.calls[:-1], _cut_call(parsed.calls[-1])))
        return text_turn(inner, parsed, guided=self.guided, hinted=hinted)


def _cut_call(call: ParsedCall) -> ParsedCall:
    return replace(call, problem="truncated", detail=cut_detail(call.name))


def _is_whole(inner: AssistantTurn) -> bool:
    """Whether an answer without calls is complete, so that no call may still follow."""
    return (
        inner.finish_reason in ("stop", "unknown")
        and not inner.cut
        and inner.refusal is None
        and not inner.calls
    )


class RequestMaker:
    """Makes the requests of one `TextTools`.

    What a request says for an offer is made once, and kept for the last few offers.

    Args:
        parser: How calls are written.
        guided: The instruction and reader of guided answers; `None` where answers aren't guided.
    """

    __slots__ = (
        "_guided",
        "_key",
        "_leading",
        "_parser",
        "_prepared",
        "_reads_thinking",
        "_results",
        "_takes_definitions",
    )

    def __init__(self, parser: ToolCallParser, guided: GuidedAnswers | None) -> None:
        self._parser = parser
        self._guided = guided
        # Models that spell calls and results alike share the derived transcripts.
        self._results: ResultForm = getattr(parser, "results", None) or OWN_RESULTS
        form = "" if self._results is OWN_RESULTS else f" {self._results}"
        self._key = f"text_tools {self._spell_calls([('name', '{}')])}{form}"
        self._prepared: OrderedDict[tuple[int, int], _Prepared] = OrderedDict()
        self._takes_definitions = all(
            "definitions" in signature(method).parameters
            for method in (parser.parse, parser.stream_formatter)
        )
        pairs = getattr(parser, "thinking", None)
        # Whether the parser takes thinking out of the text by itself.
        self._reads_thinking = pairs is not None
        starts_thinking = bool(pairs) and bool(getattr(parser, "starts_thinking", False))
        self._leading = LeadingThinking(
            THINK if pairs is None else pairs, starts_thinking=starts_thinking
        )

    def make(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> TextRequest:
        """The request for a turn of the session; changes nothing."""
        if transcript.dropped:
            transcript.refuse_dropped()
        derived = transcript.encoded(self._key, self._make_encoder)
        if offering is None or not offering.specs:
            if options.output is not None:
                # The text is the value that is asked for, whatever is in its strings.
                parse, formatter = self._leading.parser(ParsedText), self._leading.formatter(None)
                return TextRequest(derived.transcript(""), options, False, parse, formatter)
            # A model that has given guided answers continues to, even when no schema asks for it.
            guided = self._guided if derived.guided_before else None
            return self._read_with(derived.transcript(""), options, guided)
        prepared = self._prepare_offer(offering, options.output)
        options = replace(options, output=prepared.output)
        missed_calls = prepared.missed_calls
        if missed_calls is not None and derived.hinted and not missed_calls.required:
            missed_calls = None  # it was told once, and may have meant it as text
        transcript = derived.transcript(prepared.instruction)
        request = self._read_with(transcript, options, self._guided, prepared)
        return replace(request, missed_calls=missed_calls)

    def _read_with(
        self,
        transcript: Transcript,
        options: TurnOptions,
        guided: GuidedAnswers | None,
        prepared: _Prepared | None = None,
    ) -> TextRequest:
        """The request with what reads its answer: that of guided answers, or the parser."""
        parse: Callable[[str], ParsedText]
        formatter: Callable[[], StreamFormatter]
        if guided is not None:
            parse, formatter = guided.parse, guided.stream_formatter
        else:
            parse, formatter = self._parser.parse, self._parser.stream_formatter
            if prepared is not None and self._takes_definitions:
                reader = cast("OfferParser", self._parser)
                parse = partial(reader.parse, definitions=prepared.definitions)
                formatter = partial(reader.stream_formatter, definitions=prepared.definitions)
        if guided is not None or not self._reads_thinking:
            parse, formatter = self._leading.parser(parse), self._leading.formatter(formatter)
        return TextRequest(transcript, options, guided is not None, parse, formatter)

    def _prepare_offer(self, offering: ToolOffering, value: OutputSpec | None) -> _Prepared:
        key = (id(offering), id(value))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = self._prepare_new_offer(offering, value)
            if len(self._prepared) > _MOST_KEPT:
                self._prepared.popitem(last=False)
        return prepared

    def _prepare_new_offer(self, offering: ToolOffering, value: OutputSpec | None) -> _Prepared:
        definitions = [
            ToolDef(spec.name, spec.description, dict(spec.schema)) for spec in offering.specs
        ]
        guided = self._guided
        output: OutputSpec | None = None
        if guided is None:
            texts = [self._parser.format_instruction(definitions)]
        else:
            texts = [guided.instruction(definitions, offering, has_value=value is not None)]
            output = guided_output(offering, guided.arguments_key, value)
        texts.append(demands(offering, guided=guided is not None, results=self._results))
        if value is not None:
            schema = json_values.encode_text(value.schema)
            texts.append(
                "When you give the final answer, give nothing but JSON that fits this "
                f"JSON Schema: {schema}"
            )
        missed_calls: MissedCalls | None = None
        required = offering.mode != "auto"
        if required or value is None:
            forced = [one for one in definitions if one.name == offering.forced]
            marks = getattr(self._parser, "marks", None)
            tags = self._parser.tags if marks is None else marks(definitions)
            missed_calls = MissedCalls(
                forced or definitions, self._spell_calls, tags, required=required
            )
        instruction = "\n\n".join([text for text in texts if text])
        return _Prepared(offering, value, instruction, output, missed_calls, definitions)

    def _make_encoder(self) -> DerivedItems:
        return DerivedItems(self._spell_calls, self._results)

    def _spell_calls(self, calls: Sequence[tuple[str, str]]) -> str:
        if self._guided is not None:
            return self._guided.spell_calls(calls)
        return "\n".join([spell_call(self._parser, name, arguments) for name, arguments in calls])
