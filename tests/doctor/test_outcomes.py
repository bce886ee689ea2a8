"""A change of how the rules, the doctor and the readers are built changes none of their outcomes.

A change that is meant to change them writes the digests again: `python tests/doctor/outcomes.py
--write`, and its message says which outcome is another one. `--dump` shows each history.
"""

from __future__ import annotations

import json

from outcomes import GOLDEN, READ_APIS, digests_of


def test_findings_repairs_and_readings_of_a_fixed_sample_are_those_written_down() -> None:
    written = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {api: digests_of(api) for api in READ_APIS} == written
