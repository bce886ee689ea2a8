"""What SDKs repeat by themselves is told to who collects it, and to nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lutumpy.adapters.bedrock.transport import _note_retries  # of boto's answers, as it has no fake
from lutumpy.adapters.http_retries import Retries
from lutumpy.core.sdk_retries import note_retries, note_retries_of
from lutumpy.models import collect_retries


class WithoutRequest:
    @property
    def request(self) -> Any:
        raise RuntimeError("The request instance has not been set on this response.")


def answer(count: Any) -> Any:
    return SimpleNamespace(
        request=SimpleNamespace(headers={"x-stainless-retry-count": count} if count else {})
    )


def test_each_way_to_repeat_a_request_is_noted() -> None:
    with collect_retries() as outer, collect_retries() as found:
        note_retries(2)
        note_retries(0)
        for each in (
            answer("1"),
            SimpleNamespace(http_response=answer("3")),
            SimpleNamespace(response=answer("4")),
            answer(None),
            answer("0"),
            answer("many"),
            SimpleNamespace(response=WithoutRequest()),
            WithoutRequest(),
            object(),
        ):
            note_retries_of(each)
        _note_retries({"ResponseMetadata": {"RetryAttempts": 5}})
        for strange in (None, {}, {"ResponseMetadata": 7}, {"ResponseMetadata": {}}):
            _note_retries(strange)
        retries = Retries(1)
        assert retries.after_status(503, {}) is not None
        assert retries.after_status(503, {}) is None
        assert outer == []
    assert found == [2, 1, 3, 4, 5, 1]
    assert outer == found


def test_nobody_is_told_outside() -> None:
    note_retries(2)
    note_retries_of(answer("1"))
    with collect_retries() as found:
        pass
    assert found == []
