"""Errors go from one process to another, and into logs, with all that they know."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from lutumpy import (
    AdapterError,
    CommitError,
    LutumpyError,
    StaleRoundError,
    ToolRoundArityError,
    TranscriptError,
)
from lutumpy.doctor import Problem
from lutumpy.errors import CommitProblem

PROBLEM = Problem("chat.role", "messages[0].role", "wrong", "refused", path=(0, "role"))
ERRORS: list[tuple[LutumpyError, dict[str, Any]]] = [
    (
        ToolRoundArityError("one call", ["a", "b"], 1),
        {"expected": "one call", "found": ("a", "b"), "issues": 1},
    ),
    (
        CommitError([CommitProblem("missing_result", "c1", "a", "call 'c1' of 'a' has no result")]),
        {
            "problems": (
                CommitProblem("missing_result", "c1", "a", "call 'c1' of 'a' has no result"),
            )
        },
    ),
    (StaleRoundError("the session moved on", "the result"), {"result": "the result"}),
    (TranscriptError("refused", [PROBLEM]), {"problems": (PROBLEM,)}),
    (
        AdapterError(
            "busy",
            provider="openai_chat",
            status=503,
            retryable=True,
            retry_after=1.5,
            request_id="req_1",
            code="overloaded",
        ),
        {
            "provider": "openai_chat",
            "status": 503,
            "retryable": True,
            "retry_after": 1.5,
            "request_id": "req_1",
            "code": "overloaded",
        },
    ),
]


@pytest.mark.parametrize(("error", "fields"), ERRORS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy], ids=["pickled", "copied"]
)
def test_an_error_is_the_same_elsewhere(
    error: LutumpyError, fields: dict[str, Any], again: Any
) -> None:
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert {name: getattr(other, name) for name in fields} == fields


def test_the_message_of_an_arity_error_counts_what_there_was() -> None:
    assert (
        str(ToolRoundArityError("one call", [], 0))
        == "expected one call, the round has 0; it is still open"
    )
    assert str(ToolRoundArityError("one call", ["a", "b"], 2)) == (
        "expected one call, the round has 2 (a, b) and 2 issues; it is still open"
    )
    assert "1 issue;" in str(ToolRoundArityError("one call", ["a"], 1))
