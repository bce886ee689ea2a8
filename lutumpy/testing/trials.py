"""How often a program succeeds, by several trials of each case."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import Any

__all__ = ["pass_all_k", "pass_at_k", "trials_of"]


def pass_at_k(trials: Iterable[bool], k: int) -> float:
    """pass@k: the probability that of k trials at least one succeeds.

    The unbiased estimate of Chen et al. (2021), "Evaluating Large Language Models Trained on Code":
    the share of the ways to draw k of the trials in which one has succeeded.

    Args:
        trials: Whether each trial of one case has succeeded.
        k: How many trials are drawn.

    Raises:
        ValueError: k is less than 1, or there are fewer trials than k.
    """
    total, passed = _counted(trials, k)
    return 1.0 - comb(total - passed, k) / comb(total, k)


def pass_all_k(trials: Iterable[bool], k: int) -> float:
    """pass^k: the probability that of k trials all succeed; what a program needs that acts for
    customers.

    The unbiased estimate of Yao et al. (2024), "tau-bench": the share of the ways to draw k of the
    trials in which all have succeeded.

    Args:
        trials: Whether each trial of one case has succeeded.
        k: How many trials are drawn.

    Raises:
        ValueError: k is less than 1, or there are fewer trials than k.
    """
    total, passed = _counted(trials, k)
    return comb(passed, k) / comb(total, k)


def _counted(trials: Iterable[bool], k: int) -> tuple[int, int]:
    outcomes = list(trials)
    if not 1 <= k <= len(outcomes):
        raise ValueError(f"k is from 1 to the number of trials, {len(outcomes)}, not {k}")
    return len(outcomes), sum(map(bool, outcomes))


def trials_of(report: Any) -> dict[str, list[bool]]:
    """The trials in a report of pydantic-evals, by the names of their cases.

    A trial has succeeded if each assertion of its evaluators holds. One whose task or evaluator has
    raised has not.

    Args:
        report: An `EvaluationReport`, as `Dataset.evaluate(..., repeat=5)` gives it.
    """
    found: dict[str, list[bool]] = {}
    for case in report.cases:
        holds = all(result.value for result in case.assertions.values())
        found.setdefault(_name_of(case), []).append(holds and not case.evaluator_failures)
    for failure in report.failures:
        found.setdefault(_name_of(failure), []).append(False)
    return found


def _name_of(case: Any) -> str:
    # With `repeat`, the name of a case counts its trials.
    name: str = getattr(case, "source_case_name", None) or case.name
    return name
