"""The law of each wire: what the three APIs refuse, as data and small functions. Standard library only, no I/O.

`chat`, `responses` and `anthropic` each offer `check_request(body)` for a whole request and `check_messages(...)` for
the transcript in it. All report every `Problem` found, in the order in which the provider would meet them; no JSON
makes them raise.
"""

from __future__ import annotations

from lutumpy.rules.problem import Certainty, Problem

__all__ = ["Certainty", "Problem"]
