"""Many small cases in one test: collecting and reporting a test costs more than most of them.

    @each("row", ROWS, name_of)
    def test_a_row_is_kept(row): ...

It is `pytest.mark.parametrize` but for that: every case runs, whatever happened to the others, and
the test fails with the names of those that failed, and what was wrong with each.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["each"]

# Failures that are shown whole; of the others only the names.
MOST_SHOWN = 10


def each(
    names: str, cases: Iterable[Any], name_of: Callable[[Any], str] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a function that is called with each case.

    Args:
        names: The parameters that a case gives, separated by commas; one takes the case itself.
        cases: The cases. Fixtures are the same objects for all of them.
        name_of: How a failure names a case.
    """
    keys = [name.strip() for name in names.split(",")]
    listed = list(cases)
    assert listed, "there is no case"

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def run(**fixtures: Any) -> None:
            failed: list[tuple[str, BaseException]] = []
            for case in listed:
                values = dict(zip(keys, case if len(keys) > 1 else [case], strict=True))
                try:
                    function(**values, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((name_of(case), error))
            if failed:
                raise AssertionError(_describe(failed, len(listed))) from failed[0][1]

        left = [p for p in signature.parameters.values() if p.name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _describe(failed: list[tuple[str, BaseException]], count: int) -> str:
    lines = [f"{len(failed)} of {count} cases failed; the first one is shown above"]
    lines += [f"[{name}] {type(error).__name__}: {error}" for name, error in failed[:MOST_SHOWN]]
    lines += [f"[{name}]" for name, _ in failed[MOST_SHOWN:]]
    return "\n".join(lines)
