"""`tools`: the operations of an OpenAPI document as tools."""

# What is hard here
# -----------------
# Names. A model sees a tool's name and the names of its arguments, and both come from a document
# that knows other rules: an `operationId` is any text, and a parameter's name is unique only
# together with its place. So both are derived from the document's content, never from its order,
# and from all operations of the document, never from the chosen ones: another filter or another
# order gives the same names (rule Y5).
#
# Documents have mistakes. Everything that one operation needs is read for it alone, and why it
# can't be a tool is written down beside the others.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from lutumpy import DeclarationError, DynamicTool
from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.operations import Listed, Operation, list_operations, read_taken
from lutumpy.openapi.parameters import Parameter, is_json
from lutumpy.openapi.patterns import PatternFence
from lutumpy.openapi.request import OperationRequest, make_request
from lutumpy.openapi.schemas import SchemaConverter
from lutumpy.plain.clean_names import choose_names, clean_name, clean_names, with_digest
from lutumpy.plain.driving import is_async
from lutumpy.plain.safe_text import safe_repr

if TYPE_CHECKING:
    from lutumpy.openapi.bodies import Body
    from lutumpy.openapi.operations import Taken

__all__ = ["OpenApiTools", "tools"]

Effect = Literal["read", "idempotent", "once"]

_EFFECTS: Mapping[str, Effect] = {
    "GET": "read",
    "HEAD": "read",
    "OPTIONS": "read",
    "TRACE": "read",
    "PUT": "idempotent",
    "DELETE": "idempotent",
}
_MOST_PREFIX = 32
"""So that half of a name is left for the operation."""


class OpenApiTools:
    """The tools of a document's operations. Iterating gives the tools; a value.

    Attributes:
        tools: The tools, in the order of the document.
        operations: The operation of each tool, by the tool's name.
        skipped: Why an operation is not among them, by its original name: the `operationId`, or
            method and path. What was filtered out is not here.
        notes: What of an operation is not checked here, by the tool's name: patterns that can't run
            in linear time.
    """

    __slots__ = ("notes", "operations", "skipped", "tools")

    def __init__(
        self,
        tools: tuple[DynamicTool, ...],
        operations: Mapping[str, Operation],
        skipped: Mapping[str, str],
        notes: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self.tools: tuple[DynamicTool, ...] = tools
        self.operations: Mapping[str, Operation] = operations
        self.skipped: Mapping[str, str] = skipped
        self.notes: Mapping[str, tuple[str, ...]] = notes

    def __iter__(self) -> Iterator[DynamicTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, tool: object) -> bool:
        return tool in self.tools

    def __getitem__(self, name: str | int) -> DynamicTool:
        """The tool of this name, or of the operation of this original name; raises `KeyError`.

        A number is a place in `tools`.
        """
        if isinstance(name, int):
            return self.tools[name]
        for tool in self.tools:
            if name in (tool.name, tool.original_name):
                return tool
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<OpenApiTools: {len(self.tools)} tools, {len(self.skipped)} skipped>"


def tools(
    document: Mapping[str, Any],
    *,
    call: Callable[..., Any],
    only: Iterable[str] | None = None,
    tags: Iterable[str] | None = None,
    include: Callable[[Operation], bool] | None = None,
    prefix: str = "",
    describe: Callable[[Operation], str] | None = None,
    effect: Callable[[Operation], Effect | None] | None = None,
    closed: bool = False,
    outputs: bool = False,
    multi_segment: Iterable[str] = (),
    timeout: float = 15.0,
    max_retries: int = 3,
    strict: bool | None = None,
) -> OpenApiTools:
    """The operations of an OpenAPI document as tools.

    The arguments of a tool are the operation's parameters by their names, and its body as `body`.
    Calls are validated before `call` sees them. Nothing is sent and nothing fetched here.

    Args:
        document: A document of OpenAPI 3.0 or 3.1, as `json.loads` gives it.
        call: Sends a request and gives the output, async or plain: takes an `OperationRequest`,
            and by name what the `run` of a `DynamicTool` may take. A `ToolError` that it raises is
            reported to the model.
        only: Operations to take: each an `operationId`, or method and path as `"GET /pets"`.
        tags: Tags to take: operations that have one of them.
        include: Says whether an operation is taken. What is asked by `only`, `tags` and `include`
            has to hold all together.
        prefix: Put before each tool's name.
        describe: Returns the description for the model, in place of summary and
            description.
        effect: Gives the effect of an operation; `None` for that of its method: GET, HEAD, OPTIONS
            and TRACE read, PUT and DELETE are idempotent, others happen once.
        closed: Whether objects that don't say whether they take further properties take none. The
            arguments themselves never take names that the operation doesn't have.
        outputs: Whether results have to fit the schemas of the successful responses; `None` is the
            result where a response has no content.
        multi_segment: Names of path parameters whose values may hold slashes; they are sent as
            `%2F`.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first one, for idempotent tools that timed out.
        strict: Whether the provider should enforce the schemas; `None` leaves it to the adapter.

    Returns:
        The tools, and in `skipped` why an operation can't be one: it refers out of the document,
        can never be called, or has a mistake. It never harms the others. Patterns that can't run in
        linear time are left out, and told of in `notes` and to the model.

    Raises:
        DeclarationError: It isn't a document of OpenAPI 3.0 or 3.1; `only` or `tags` name what it
            doesn't have; an option can't be one.
        ImportError: The extra `schema` isn't installed.
    """
    if not callable(call):
        raise DeclarationError(f"call must be a function, not {safe_repr(call)}")
    if clean_name(prefix or "_") != (prefix or "_") or len(prefix) > _MOST_PREFIX:
        raise DeclarationError(
            f"{prefix!r:.100} can't stand before the names of tools: {_MOST_PREFIX} letters, "
            "digits, '_' and '-' of ASCII at most"
        )
    read = Document(document)
    listed, skipped = list_operations(read)
    names = clean_names([one.operation.original_name for one in listed], prefix=prefix)
    wanted = _choose(listed, only, tags, include)
    maker = _ToolMaker(
        read, call, closed, outputs, frozenset(multi_segment), (timeout, max_retries, strict)
    )
    imported: dict[str, DynamicTool] = {}
    operations: dict[str, Operation] = {}
    for one in wanted:
        operation = one.operation
        name = names[operation.original_name]
        description = describe(operation) if describe else _describe(operation)
        kind = (effect(operation) if effect else None) or _EFFECTS.get(operation.method, "once")
        try:
            imported[name] = maker.make(one, name, description, kind)
        except (UnusableError, DeclarationError) as error:
            skipped[operation.original_name] = str(error)
        except RecursionError:
            skipped[operation.original_name] = "its schemas are nested too deeply"
        else:
            operations[name] = operation
    notes = {name: note for name, note in maker.notes.items() if name in imported}
    return OpenApiTools(tuple(imported.values()), operations, skipped, notes)


def _choose(
    listed: list[Listed],
    only: Iterable[str] | None,
    tags: Iterable[str] | None,
    include: Callable[[Operation], bool] | None,
) -> list[Listed]:
    wanted = listed
    if only is not None:
        names = _check_texts("only", only)
        known = {
            text for one in listed for text in (one.operation.original_name, one.operation.label)
        }
        _refuse_unknown("operations", names - known)
        wanted = [
            one
            for one in wanted
            if one.operation.original_name in names or one.operation.label in names
        ]
    if tags is not None:
        asked = _check_texts("tags", tags)
        _refuse_unknown("tags", asked - {tag for one in listed for tag in one.operation.tags})
        wanted = [one for one in wanted if asked.intersection(one.operation.tags)]
    if include is not None:
        wanted = [one for one in wanted if include(one.operation)]
    return wanted


def _check_texts(what: str, texts: Iterable[str]) -> set[str]:
    if isinstance(texts, str):
        raise DeclarationError(f"{what} takes a list of texts, not the text {texts!r:.100}")
    return set(texts)


def _refuse_unknown(what: str, names: Collection[str]) -> None:
    if names:
        shown = ", ".join([repr(name) for name in sorted(names)[:10]])
        raise DeclarationError(f"the document has no {what} {shown}")


def _describe(operation: Operation) -> str:
    texts = [operation.summary, operation.description]
    if operation.description.startswith(operation.summary):
        texts = [operation.description]
    if operation.deprecated:
        texts.append("Deprecated.")
    return "\n\n".join([text for text in texts if text]) or operation.label


class _ToolMaker:
    """Makes the tools of one document."""

    def __init__(
        self,
        document: Document,
        call: Callable[..., Any],
        closed: bool,
        outputs: bool,
        segments: frozenset[str],
        options: tuple[float, int, bool | None],
    ) -> None:
        self._document = document
        self._call = call
        self._outputs = outputs
        self._segments = segments
        self._options = options
        self._sent = SchemaConverter(document, direction="request", closed=closed)
        # What a server sends may always have more than its document says.
        self._received = SchemaConverter(document, direction="response", closed=False)
        self._fence = PatternFence()
        self.notes: dict[str, tuple[str, ...]] = {}

    def make(self, listed: Listed, name: str, description: str, effect: Effect) -> DynamicTool:
        """The tool of an operation.

        Raises:
            UnusableError: It can't be one.
            DeclarationError: Its schema can't be used.
        """
        operation = listed.operation
        taken = read_taken(self._document, listed, self._segments)
        parameters, body_argument = _name_arguments(taken)
        timeout, max_retries, strict = self._options

        def make(arguments: Mapping[str, Any]) -> OperationRequest:
            return make_request(operation, taken, parameters, body_argument, arguments)

        schema = self._make_schema(parameters, body_argument, taken.body)
        output_schema = self._make_output_schema(operation) if self._outputs else None

        def declare(
            schema: Mapping[str, Any], output_schema: Mapping[str, Any] | None
        ) -> DynamicTool:
            return DynamicTool(
                name,
                description,
                schema,
                run=_make_run(self._call, make),
                validate=_make_check(make),
                output_schema=output_schema,
                timeout=timeout,
                max_retries=max_retries,
                effect=effect,
                strict=strict,
                annotations=_annotate(operation),
            )

        try:
            tool = declare(schema, output_schema)
        except DeclarationError:
            schema, dropped = self._fence.take_out(schema)
            if output_schema is not None:
                output_schema, more = self._fence.take_out(output_schema)
                dropped += more
            if not dropped:
                raise
            tool = declare(schema, output_schema)
            self.notes[name] = tuple([f"pattern not checked: {one}" for one in dropped])
        tool.original_name = operation.original_name
        return tool

    def _make_schema(
        self, parameters: Mapping[str, Parameter], body_argument: str | None, body: Body | None
    ) -> dict[str, Any]:
        references: set[str] = set()
        properties: dict[str, Any] = {}
        required: list[str] = []
        for argument, parameter in parameters.items():
            schema = self._sent.convert(parameter.schema, references, left_out=parameter.left_out)
            if parameter.description:
                schema["description"] = parameter.description
            if parameter.deprecated:
                schema["deprecated"] = True
            properties[argument] = schema
            if parameter.required:
                required.append(argument)
        if body is not None and body_argument is not None:
            properties[body_argument] = self._sent.convert(body.schema, references)
            if body.description:
                properties[body_argument]["description"] = body.description
            if body.required:
                required.append(body_argument)
        schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        definitions = self._sent.definitions(references)
        return {**schema, "$defs": definitions} if definitions else schema

    def _make_output_schema(self, operation: Operation) -> dict[str, Any] | None:
        """The schema of what successful responses hold; `None` where the document doesn't say."""
        responses = operation.definition.get("responses")
        if not isinstance(responses, Mapping):
            return None
        references: set[str] = set()
        found: list[dict[str, Any]] = []
        for status, entry in responses.items():
            if not str(status).startswith("2"):
                continue
            content = self._document.follow(entry, "a response").get("content")
            if not content:
                found.append({"type": "null"})
                continue
            kinds = [name for name in content if is_json(str(name))]
            if len(kinds) < len(content):
                return None  # it may be a text or a file as well
            for kind in kinds:
                media_type = self._document.follow(content[kind], "a media type")
                found.append(self._received.convert(media_type.get("schema", True), references))
        different = [one for index, one in enumerate(found) if one not in found[:index]]
        if not different:
            return None
        schema = different[0] if len(different) == 1 else {"anyOf": different}
        definitions = self._received.definitions(references)
        return {**schema, "$defs": definitions} if definitions else schema


def _name_arguments(taken: Taken) -> tuple[dict[str, Parameter], str | None]:
    """The parameters by the names of their arguments, and the name of the body's argument.

    A parameter has its own name, in the characters that all providers take. Those that would share
    a name have their place before it: `path_id` and `query_id`.
    """
    candidates: dict[tuple[str, str], list[str]] = {}
    for parameter in taken.parameters:
        name = clean_name(parameter.name, others="_.-")
        placed = clean_name(f"{parameter.place}_{name}", others="_.-")
        about = f"{parameter.place} {parameter.name}"
        candidates[parameter.place, parameter.name] = [
            name,
            placed,
            *[with_digest(about, placed, 64, digits) for digits in (8, 24, 56)],
        ]
    if taken.body is not None:
        candidates["body", ""] = [
            "body",
            "request_body",
            *[with_digest("body", "request_body", 64, digits) for digits in (8, 24, 56)],
        ]
    names = choose_names(candidates)
    parameters = {names[one.place, one.name]: one for one in taken.parameters}
    return parameters, names.get(("body", ""))


def _make_check(
    make: Callable[[Mapping[str, Any]], OperationRequest],
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        make(arguments)
        return arguments

    return check


def _make_run(
    call: Callable[..., Any], make: Callable[[Mapping[str, Any]], OperationRequest]
) -> Callable[..., Any]:
    """The function that runs a tool. It has the signature of `call`, and so receives what `call`
    asks for.
    """
    if is_async(call):

        @wraps(call)
        async def run_async(arguments: dict[str, Any], **supplied: Any) -> Any:
            return await call(make(arguments), **supplied)

        return run_async

    @wraps(call)
    def run(arguments: dict[str, Any], **supplied: Any) -> Any:
        return call(make(arguments), **supplied)

    return run


def _annotate(operation: Operation) -> dict[str, Any]:
    return {
        "method": operation.method,
        "path": operation.path,
        "tags": list(operation.tags),
        "deprecated": operation.deprecated,
    }
