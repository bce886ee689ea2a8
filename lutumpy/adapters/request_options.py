"""The keywords of an adapter's `request`, which are options of this library or parameters of the
provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.model import check_effort, check_options
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.prefix import checked_policy
from lutumpy.core.unset import unset_names
from lutumpy.rules.host_facts import checked_host

__all__ = ["request_options"]

_OPTIONS = frozenset({"model", "temperature", "max_output_tokens", "strict"})
# What goes into the record of a request.
_RECORDED = frozenset({"effort", "host", "on_prefix_change", "output"})


def request_options(
    api: str,
    options: Mapping[str, Any],
    with_output: Callable[[OutputSpec, Mapping[str, Any]], dict[str, Any]],
    own: Collection[str] = (),
) -> dict[str, Any]:
    """The keywords of `request` as the functions that make the fields of a request take them.

    Args:
        api: The adapter's API.
        options: The keywords. What isn't an option of this library is a provider parameter.
        with_output: Adds the schema of an answer to provider parameters, as the API spells it.
        own: Further options, which only the adapter's API has.

    Raises:
        TypeError: An option has the wrong type.
        ValueError: A limit is below 1.
    """
    check_options(
        options.get("temperature"),
        options.get("max_output_tokens"),
        options.get("extra"),
        options.get("strict"),
    )
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in options.items():
        if name in _OPTIONS or name in own:
            known[name] = value
        elif name != "extra" and name not in _RECORDED:
            extra[name] = value
    extra |= options.get("extra") or {}
    output = options.get("output")
    if output is not None:
        extra = {**with_output(output, extra), **unset_names(extra)}
    return {**known, "extra": extra, "record": _make_record(api, options)}


def _make_record(api: str, options: Mapping[str, Any]) -> RequestRecord:
    """The record of a request for a client of the user's own.

    Args:
        api: The adapter's API.
        options: The keywords of `request`; `model`, `host` (facts of the host that it goes to),
            `effort`, `on_prefix_change` and `output` are read.

    Raises:
        TypeError: One is of another type.
        ValueError: `on_prefix_change` is none of its words, or `effort` is blank.
    """
    check_effort(options.get("effort"))
    model, host = options.get("model"), checked_host(options.get("host"))
    if model is not None and not isinstance(model, str):
        raise TypeError(f"model takes text, not {model!r:.100}")
    policy = options.get("on_prefix_change")
    record = RequestRecord()
    record.api = api
    record.model = model
    record.host = None if host is None else host.address or None
    if policy is not None:
        record.policy = checked_policy(policy)
    record.effort = options.get("effort")
    record.output = options.get("output")
    return record
