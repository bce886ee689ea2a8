"""What is asked of the inner model in place of the tools, and how its answer is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec, TurnOptions
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.text_tools.derived import DerivedItems
from lutumpy.text_tools.guided_answer import GuidedAnswers
from lutumpy.text_tools.guided_schema import guided_output
from lutumpy.text_tools.instruction import demands
from lutumpy.text_tools.missed_calls import MissedCalls
from lutumpy.text_tools.protocol import ParsedText, StreamFormatter, ToolCallParser, spell_call
from lutumpy.text_tools.thinking import THINK, LeadingThinking
from lutumpy.text_tools.turn import text_turn
from lutumpy.tools.definition import ToolDef

__all__ = ["Asking", "TextRequest"]

_KEPT = 16


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What an offer comes to. Holds what it was made of, so that nothing else can take the place in the cache.

    Attributes:
        offering: The offer.
        value: What a structured turn asks for.
        instruction: What the model is told.
        output: What the endpoint is asked to hold the model to.
        missed: Looks for what was meant as a call, where one is required.
    """

    offering: ToolOffering
    value: OutputSpec | None
    instruction: str
    output: OutputSpec | None
    missed: MissedCalls | None


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request to the inner model.

    Attributes:
        transcript: The conversation as that model is told it.
        options: Its options.
        guided: The answer is read as a guided one.
        parse: Takes the text of the answer apart.
        formatter: Makes a formatter for a streamed answer.
        missed: Looks for what was meant as a call, where one is required.
    """

    transcript: Transcript
    options: TurnOptions
    guided: bool
    parse: Callable[[str], ParsedText]
    formatter: Callable[[], StreamFormatter]
    missed: MissedCalls | None = None

    def read(self, inner: AssistantTurn) -> AssistantTurn:
        """The turn of a session for the inner model's answer."""
        parsed = self.parse(inner.text)
        if (
            self.missed is not None
            and not parsed.calls
            and not parsed.format_errors
            and _is_whole(inner)
        ):
            missed = self.missed.find(parsed)
            if missed is not None:
                parsed = replace(parsed, calls=(missed,))
        return text_turn(inner, parsed, guided=self.guided)


def _is_whole(inner: AssistantTurn) -> bool:
    """Whether a model that called no tool has said all that it wanted to."""
    return (
        inner.finish_reason in ("stop", "unknown")
        and not inner.cut
        and inner.refusal is None
        and not inner.calls
    )


class Asking:
    """Makes the requests of one `TextTools`. What an offer comes to is made once, and kept for the last few offers.

    Args:
        parser: How calls are written.
        guided: What is said and read where the answer is held to a schema; `None` where it isn't.
    """

    __slots__ = ("_guided", "_key", "_leading", "_parser", "_prepared", "_splits")

    def __init__(self, parser: ToolCallParser, guided: GuidedAnswers | None) -> None:
        self._parser = parser
        self._guided = guided
        # Models that spell calls alike share the derived transcripts of a conversation.
        self._key = f"text_tools {self._spell([('name', '{}')])}"
        self._prepared: OrderedDict[tuple[int, int], _Prepared] = OrderedDict()
        pairs = getattr(parser, "thinking", None)
        # Whether the parser takes thinking out of the text by itself.
        self._splits = pairs is not None
        starts_thinking = bool(pairs) and bool(getattr(parser, "starts_thinking", False))
        self._leading = LeadingThinking(
            THINK if pairs is None else pairs, starts_thinking=starts_thinking
        )

    def request(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> TextRequest:
        """The request for a turn of the session; changes nothing."""
        if transcript.dropped:
            transcript.refuse_dropped()
        derived = transcript.encoded(self._key, self._encoder)
        if offering is None or not offering.specs:
            if options.output is not None:
                # The text is the value that is asked for, whatever stands in its strings.
                leading = self._leading
                return TextRequest(
                    derived.transcript(""),
                    options,
                    False,
                    leading.parser(ParsedText),
                    leading.formatter(None),
                )
            # A model that has answered with guided answers goes on with that by itself.
            guided = self._guided if derived.guided_before else None
            return self._request(derived.transcript(""), options, guided, None)
        prepared = self._prepare(offering, options.output)
        options = replace(options, output=prepared.output)
        return self._request(
            derived.transcript(prepared.instruction), options, self._guided, prepared.missed
        )

    def _request(
        self,
        transcript: Transcript,
        options: TurnOptions,
        guided: GuidedAnswers | None,
        missed: MissedCalls | None,
    ) -> TextRequest:
        reader = self._parser if guided is None else guided
        parse: Callable[[str], ParsedText] = reader.parse
        formatter: Callable[[], StreamFormatter] = reader.stream_formatter
        if guided is not None or not self._splits:
            parse, formatter = self._leading.parser(parse), self._leading.formatter(formatter)
        return TextRequest(transcript, options, guided is not None, parse, formatter, missed)

    def _prepare(self, offering: ToolOffering, value: OutputSpec | None) -> _Prepared:
        key = (id(offering), id(value))
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = self._made(offering, value)
            if len(self._prepared) > _KEPT:
                self._prepared.popitem(last=False)
        return prepared

    def _made(self, offering: ToolOffering, value: OutputSpec | None) -> _Prepared:
        definitions = [
            ToolDef(spec.name, spec.description, dict(spec.schema)) for spec in offering.specs
        ]
        guided = self._guided
        if guided is None:
            said = [self._parser.format_instruction(definitions)]
        else:
            said = [guided.instruction(definitions, offering, has_value=value is not None)]
        said.append(demands(offering, guided=guided is not None))
        if value is not None:
            schema = json_values.encode_text(value.schema)
            said.append(
                f"When you give the final answer, give nothing but JSON that fits this JSON Schema: {schema}"
            )
        output = None if guided is None else guided_output(offering, guided.arguments_key, value)
        missed = None
        if offering.mode != "auto":
            names = (
                [spec.name for spec in offering.specs]
                if offering.forced is None
                else [offering.forced]
            )
            missed = MissedCalls(names, self._spell)
        return _Prepared(
            offering, value, "\n\n".join([text for text in said if text]), output, missed
        )

    def _encoder(self) -> DerivedItems:
        return DerivedItems(self._spell)

    def _spell(self, calls: Sequence[tuple[str, str]]) -> str:
        if self._guided is not None:
            return self._guided.calls_text(calls)
        return "\n".join([spell_call(self._parser, name, arguments) for name, arguments in calls])
