"""Hosts: whose an address is, and what changes where the vendor of an API is not asked.

The table of hosts is in `host_facts`.
"""

# Compatible hosts speak a vendor's API and check less of it. So a problem that only the vendor is
# known to refuse is less certain elsewhere: `for_compatible_host` turns "refused" into "some".
# Which rules these are is in each API's table of rules (`rules/<api>/catalogue.py`).

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from lutumpy.apis import serving
from lutumpy.errors import Problem

__all__ = [
    "COMPATIBLE",
    "for_compatible_host",
    "host_name",
    "is_compatible",
]

COMPATIBLE = "compatible"
"""The name of any host that isn't the vendor's own."""

_ADDRESS = re.compile(r"[\w.-]+(?::\d+)?\Z")


def host_name(given: str) -> str:
    """The host that a name or an address means.

    Args:
        given: `groq`, `api.groq.com`, `https://api.groq.com/openai/v1`, or `compatible` for any
            host that isn't the vendor's own.

    Raises:
        ValueError: It is neither `compatible`, nor a known name, nor an address.
    """
    # Rules of every API import this module, and most of their users name no host.
    from lutumpy.rules.host_facts import HOST_FACTS

    word = given.strip().lower()
    if word == COMPATIBLE:
        return COMPATIBLE
    if word in HOST_FACTS:
        return HOST_FACTS[word].address
    try:
        found = urlsplit(word if "://" in word else f"//{word}").netloc.rpartition("@")[2]
    except ValueError:
        found = ""
    is_address = "." in found or ":" in found or found.startswith("localhost")
    if not is_address or (_ADDRESS.match(found) is None and not found.startswith("[")):
        raise ValueError(
            f"unknown host {given!r}: an address (api.groq.com, https://host/v1), "
            f"{COMPATIBLE!r}, or one of {', '.join(HOST_FACTS)}"
        )
    return found


def is_compatible(api: str, host: str) -> bool:
    """Whether a host, named as for `host_name`, is not the vendor of an API.

    Raises:
        ValueError: as for `host_name`.
    """
    shape = serving(api, "rules").SHAPE
    found = host_name(host).partition(":")[0]
    if shape.other_hosts.fullmatch(found) is not None:
        return False
    return found != shape.host and not found.endswith(f".{shape.host}")


def for_compatible_host(
    found: list[Problem], is_vendor_only: Callable[[Problem], bool]
) -> list[Problem]:
    """The same problems, but with certainty "some" where only the vendor is known to refuse.

    Args:
        found: The problems.
        is_vendor_only: Whether other hosts may accept what a problem is about. The table of rules
            of each API has this function.
    """
    softened: list[Problem] = []
    for problem in found:
        if problem.certainty == "refused" and is_vendor_only(problem):
            problem = replace(problem, certainty="some")
        softened.append(problem)
    return softened
