"""A call that the provider makes itself, if somebody approves it."""

# Some providers call tools of other servers (MCP) on their own, and ask first. Such a request has
# an answer like any call, but everything else about it is different: no tool of the toolset is
# called, nothing here executes it, and its arguments can't be edited.
#
# It is a `BaseToolCall` all the same, because hooks for calls of every tool have to see it, and are
# written for those. What such a hook reads of a call is there: metadata, arguments, input, and a
# selector, which is that of no toolset, so that `matches` is false for it. It is never among the
# calls of a round: a type checker knows what types these have (decision 18).

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from lutumpy.core.items import APPROVED, ToolMetadata
from lutumpy.plain import json_values
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.results import ToolResult, rejected
from lutumpy.tools.selectors import BaseToolset, Selector, ToolsetTable

if TYPE_CHECKING:
    from typing_extensions import Self

    from lutumpy.core.call_place import CallPlace

__all__ = ["ApprovalRequest", "answer_request", "approval_misfit", "is_approval"]

_NOT_APPROVED = "Nobody approved this call."


class ApprovalRequest(BaseToolCall):
    """A call that the provider itself makes, if it is approved.

    It is answered by `approve` or `reject`, and commit needs one of the two. Requests are made by
    reading an answer: they are in `round.approvals`.

    Args:
        metadata: The call.
        server_label: The label of the server.
        origin: Its place in the conversation.

    Raises:
        ValueError: the arguments are not a JSON object.

    Attributes:
        metadata: The id of the request, the name of the tool at its server, and the arguments as
            the model wrote them.
        server_label: The label of the server whose tool is called, as the request for the turn
            named it.
        input: The arguments as attributes. Nothing has validated them against a schema: only the
            server knows one.
    """

    __slots__ = ("server_label",)

    input: BaseModel
    server_label: str

    def __init__(
        self, metadata: ToolMetadata, server_label: str, origin: CallPlace | None = None
    ) -> None:
        arguments = json_values.parse_arguments(metadata.arguments)
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not a JSON object")
        selector = _approval_selector()
        validated = selector.tool.input_type.model_validate(arguments)
        super().__init__(metadata, validated, selector, (), origin)
        self.server_label = server_label

    def __repr__(self) -> str:
        metadata = self.metadata
        return f"<ApprovalRequest {self.server_label} {metadata.name} {metadata.id}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.metadata, self.server_label, self.origin)

    def approve(self) -> ToolResult:
        """The result that lets the provider make the call."""
        return answer_request(self.metadata, True)

    def complete(self, output: bool) -> ToolResult:
        """As `approve` for `True`; for `False` a rejection that says that nobody approved it.

        Never raises: any other output is reported by `commit`.
        """
        return answer_request(self.metadata, output)

    def with_input(self, new: Any) -> Self:
        """Raises `TypeError`: the provider makes the call as the model wrote it."""
        raise TypeError(
            f"the arguments of {self.metadata.name!r} can't be edited: the provider makes the call "
            "as the model wrote it; approve it, or reject it"
        )

    def as_read(self) -> ApprovalRequest:
        """The same request made anew, so that nobody else holds its input."""
        return ApprovalRequest(self.metadata, self.server_label, self.origin)


def answer_request(metadata: ToolMetadata, output: Any) -> ToolResult:
    """The result of a request for approval that is answered with `output`.

    Never raises: what is neither `True` nor `False` is kept, with the reason in `output_error`.
    """
    if output is True:
        return ToolResult(metadata, APPROVED, "ok", None, True)
    if output is False:
        return rejected(metadata, _NOT_APPROVED)
    kind = type(output).__name__
    error = f"a request for approval is completed with True or False, not {kind}"
    return ToolResult(metadata, "", "ok", None, output, error)


def approval_misfit(result: ToolResult) -> str | None:
    """Why a result doesn't answer a request for approval, or `None` when it does."""
    if result.status != "ok" or result.content == APPROVED:
        return None
    return "it neither approves nor rejects; make one with request.approve() or .reject(reason)"


def is_approval(selector: Selector[Any, Any, Any] | None) -> bool:
    """Whether this is the selector that all requests for approval have."""
    return selector is not None and selector.toolset is _Approvals


class _Approvals(BaseToolset):
    """The toolset of the selector of requests for approval. Nobody can offer it."""

    __lutumpy_table__: ClassVar[ToolsetTable] = ToolsetTable({})


@cache
def _approval_selector() -> Selector[Any, Any, Any]:
    # Made when the first request comes: building a model is slow, and few programs get any.
    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow", frozen=True)

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tool = CompiledTool(
        definition=ToolDef("approval", "", schema),
        input_type=Arguments,
        output_type=bool,
        adapter=TypeAdapter(bool),
        wrapped=False,
    )
    return Selector(_Approvals, tool)
