"""Every word of the SDKs that are installed, against the table of how each is treated.

    python tests/sdk_words/check.py

Prints how many words of each API are treated in which way, and then what is open: a word without a
row, a row whose claim doesn't hold, a row of a word that the SDK no longer has. Ends with 1 if
anything is open. `nox -s words` runs it with the newest SDKs.

A row is `kind,word,treatment,reason,gone` in `table/<api>.csv`. The treatments are those of
`words.TREATMENTS`. What is ignored or refused has a reason. A row whose word newer SDKs have
dropped stays, for the older ones, with the last version that had it in `gone`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from sdk_words.claims import fault_of
from sdk_words.words import KINDS, TREATMENTS, Row, Word, read_table

__all__ = ["APIS", "Found", "check_api", "main", "table_faults", "words_of_sdk"]

Found = dict[tuple[str, str], Word]
"""The words of an API, by kind and word."""

APIS: dict[str, tuple[str, str]] = {
    "anthropic_messages": ("anthropic_words", "message_words"),
    "bedrock_converse": ("bedrock_words", "converse_words"),
    "gemini_generate_content": ("gemini_words", "generate_words"),
    "openai_chat": ("openai_words", "chat_words"),
    "openai_responses": ("openai_words", "response_words"),
}
"""What lists the words of each API: a module, imported with its SDK when it is asked, and a
function in it.
"""


def _module_of(api: str) -> Any:
    return import_module(f"sdk_words.{APIS[api][0]}")


def words_of_sdk(api: str) -> Found:
    """The words of the SDK that is installed; of several equal ones the first."""
    found: Found = {}
    for word in getattr(_module_of(api), APIS[api][1])():
        found.setdefault((word.kind, word.word), word)
    return found


def table_faults(rows: Sequence[Row]) -> list[str]:
    """What is wrong with a table by itself."""
    faults: list[str] = []
    order = [(list(KINDS).index(row.kind), row.word) for row in rows if row.kind in KINDS]
    if order != sorted(order):
        faults.append("the rows are not sorted by kind and word")
    times = Counter((row.kind, row.word) for row in rows)
    faults += [f"{kind} {word}: has {n} rows" for (kind, word), n in times.items() if n > 1]
    for row in rows:
        if row.kind not in KINDS:
            faults.append(f"{row.kind} {row.word}: there is no such kind")
        if row.treatment not in TREATMENTS:
            faults.append(f"{row.kind} {row.word}: there is no treatment {row.treatment!r}")
        elif row.treatment in ("ignored", "refused") and not row.reason:
            faults.append(f"{row.kind} {row.word}: it is {row.treatment} without a reason")
    return faults


def check_api(api: str, rows: Sequence[Row], found: Found, *, whole: bool = True) -> list[str]:
    """What is open for an API.

    Args:
        api: Its name.
        rows: Its table.
        found: The words of its SDK.
        whole: Words without a row, and rows without a word, count.
    """
    faults = table_faults(rows)
    by_word = {(row.kind, row.word): row for row in rows}
    for key, word in found.items():
        row = by_word.get(key)
        if row is None:
            if whole:
                faults.append(f"{word.kind} {word.word}: has no row; it stands in {word.where}")
        elif fault := fault_of(api, word, row):
            faults.append(f"{word.kind} {word.word}: is not {row.treatment}: {fault}")
    if whole:
        faults += [
            f"{row.kind} {row.word}: no such word in {_module_of(api).version}"
            for row in rows
            if (row.kind, row.word) not in found and not row.gone
        ]
    return faults


def main() -> int:
    """Check every API; gives the exit code."""
    open_count = 0
    for api in APIS:
        rows, found = read_table(api), words_of_sdk(api)
        treated = Counter(row.treatment for row in rows if (row.kind, row.word) in found)
        counts = ", ".join([f"{treated[name]} {name}" for name in TREATMENTS])
        print(f"{api} ({_module_of(api).version}): {len(found)} words: {counts}")
        faults = check_api(api, rows, found)
        for fault in faults:
            print(f"  {fault}")
        open_count += len(faults)
    print(f"{open_count} open" if open_count else "nothing is open")
    return 1 if open_count else 0


if __name__ == "__main__":
    raise SystemExit(main())
