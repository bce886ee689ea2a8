"""What a durable loop checks of its arguments, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy import Signer
from lutumpy.durable.checks import check_lease

__all__ = ["UNSENT", "check_arguments", "check_parts"]

UNSENT = "nothing was sent"


def check_arguments(*, sign: Any, verify: Any, drift: Any, on_progress: Any, lease: Any) -> None:
    """Raise `TypeError` or `ValueError` for arguments that no loop takes."""
    if sign is not None and not isinstance(sign, Signer):
        raise TypeError(f"sign= takes a Signer, not {type(sign).__name__}; {UNSENT}")
    if verify is not None and not isinstance(verify, Mapping):
        raise TypeError(f"verify= takes keys by id, not {type(verify).__name__}; {UNSENT}")
    if drift not in ("refuse", "reject"):
        raise ValueError(f"drift= is 'refuse' or 'reject', not {drift!r}; {UNSENT}")
    if on_progress is not None and not callable(on_progress):
        raise TypeError(
            f"on_progress= takes a callable, not {type(on_progress).__name__}; {UNSENT}"
        )
    if isinstance(lease, bool) or not isinstance(lease, (int, float)):
        raise TypeError(f"lease= is a number of seconds, not {type(lease).__name__}; {UNSENT}")
    if not lease > 0:
        raise ValueError(f"lease={lease} is not a positive number of seconds; {UNSENT}")
    check_lease(lease)


def check_parts(store: Any, runner: Any) -> None:
    """Raise `TypeError` for what isn't a store, or isn't a runner."""
    if not callable(getattr(store, "claim", None)):
        raise TypeError(f"store= takes a SessionStore, not {type(store).__name__}; {UNSENT}")
    if runner is not None and not callable(getattr(runner, "run", None)):
        raise TypeError(f"runner= takes a CallRunner, not {type(runner).__name__}; {UNSENT}")
