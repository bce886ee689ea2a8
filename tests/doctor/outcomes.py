"""What is found, repaired and read in many histories, as digests that a change can be held against.

    python tests/doctor/outcomes.py --write             the digests of the suite, again
    python tests/doctor/outcomes.py --dump FILE         everything about thousands of histories
    python tests/doctor/outcomes.py --dump FILE --more DIR ...     and about those of a folder

Two dumps of two commits are compared line by line: each line is one history and all its outcome.
Histories are recorded ones, valid ones broken in one of the ways of `mutations.py`, and valid ones
with up to four random changes to their entries and blocks. All are drawn with a seed.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(TESTS)]

from composed import APIS, FIXTURES, History, composed, recorded  # noqa: E402
from mutations import MUTATIONS  # noqa: E402

from lutumpy.apis import serving  # noqa: E402
from lutumpy.doctor import check_messages, propose_repairs  # noqa: E402
from lutumpy.dumps import dump_transcript  # noqa: E402
from lutumpy.errors import LutumpyError  # noqa: E402

GOLDEN = Path(__file__).parent / "outcomes.json"
READ_APIS = (*APIS, "ollama_chat")
SAMPLE = 40
"""Histories of each API whose outcome the suite holds."""


# ------------------------------------------------------------------ histories


def every_recorded(folders: list[Path]) -> Iterator[tuple[str, History]]:
    """The histories of all recorded requests in some folders."""
    for folder in folders:
        for file in sorted(folder.glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                api = row.get("api") or _api_of(file.name)
                if api in READ_APIS:
                    key = serving(api, "rules").SHAPE.messages_key
                    request = row.get("request")
                    found = request.get(key) if isinstance(request, dict) else row.get("history")
                    if isinstance(found, list):
                        yield api, found


def _api_of(name: str) -> str | None:
    return next((api for api in READ_APIS if api in name), None)


def broken(api: str, count: int) -> Iterator[History]:
    """Valid histories, half broken in a known way and half at random."""
    rng = random.Random(f"outcomes {api}")
    pool = recorded_of(api)
    ways = sorted(MUTATIONS.get(api, {}))
    for number in range(count):
        is_composed = api in APIS and rng.random() < 0.6
        history = composed(api, rng) if is_composed else copy.deepcopy(rng.choice(pool))
        if ways and number % 2:
            try:
                MUTATIONS[api][ways[number // 2 % len(ways)]](rng, history)
            except (KeyError, TypeError, IndexError, AttributeError):
                continue  # it fits no such history
        else:
            for _ in range(rng.randint(1, 4)):
                change_at_random(rng, history)
        yield history


def recorded_of(api: str) -> list[History]:
    if api in APIS:
        return recorded(api)
    return [found for name, found in every_recorded([FIXTURES]) if name == api]


def change_at_random(rng: random.Random, history: History) -> None:
    """One change: an entry or a block is lost, doubled, moved, or a field of it is another."""
    lists = list(_lists_in(history))
    chosen = rng.choice(lists) if rng.random() < 0.7 and lists else history
    if not chosen or isinstance(chosen, str):
        return
    index = rng.randrange(len(chosen))
    match rng.randrange(6):
        case 0:
            del chosen[index]
        case 1:
            chosen.insert(rng.randrange(len(chosen) + 1), copy.deepcopy(chosen[index]))
        case 2:
            chosen.insert(rng.randrange(len(chosen)), chosen.pop(index))
        case 3:
            moved = chosen.pop(index)
            # A block must not go into itself.
            rng.choice([other for other in lists if not _holds(moved, other)]).append(moved)
        case _:
            _change_field(rng, chosen[index])


def _change_field(rng: random.Random, value: Any) -> None:
    objects = [found for found in _objects_in(value) if found]
    if not objects:
        return
    target = rng.choice(objects)
    key = rng.choice(sorted(target))
    values = [None, "", 7, "x y.z", [], {}, "user", "assistant", "model", *target.values()]
    if rng.random() < 0.2:
        del target[key]
    else:
        target[key] = copy.deepcopy(rng.choice(values))


def _lists_in(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (list, dict)):
            yield from _lists_in(inner)


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    inners = value.values() if isinstance(value, dict) else value
    for inner in inners if isinstance(value, (dict, list)) else ():
        yield from _objects_in(inner)


def _holds(value: Any, wanted: list[Any]) -> bool:
    if not isinstance(value, (list, dict)):
        return False
    return any(found is wanted for found in _lists_in(value))


# -------------------------------------------------------------------- outcome


def outcome_of(api: str, history: History) -> dict[str, Any]:
    """The findings, the repairs, and the reading or why there is none."""
    problems = [
        [p.rule, p.position, p.message, p.certainty, p.path, p.call_ids, p.tools]
        for thinking in (None, "enabled")
        for p in check_messages(api, history, thinking=thinking)
    ]
    repairs = [
        [r.kind, r.rule, r.reason, r.position, r.call_ids, r.tools, r.patch]
        for thorough in (False, True)
        for r in propose_repairs(api, history, thorough=thorough)
    ]
    try:
        reading: Any = dump_transcript(serving(api, "reader")(history))
    except LutumpyError as error:
        reading = str(error)
    return {"problems": problems, "repairs": repairs, "reading": reading}


def digests_of(api: str) -> dict[str, str]:
    """One digest each of the findings, the repairs and the readings of a fixed sample."""
    found = {name: hashlib.sha256() for name in ("problems", "repairs", "reading")}
    for history in broken(api, SAMPLE):
        for name, value in outcome_of(api, history).items():
            found[name].update(_encoded(value))
    return {name: digest.hexdigest()[:16] for name, digest in found.items()}


def _encoded(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=repr).encode()


def write_dump(target: Path, folders: list[Path], count: int) -> None:
    """One line for each history: its API, its digest, and its outcome."""
    with target.open("wb") as file:
        histories = list(every_recorded(folders))
        histories += [(api, found) for api in READ_APIS for found in broken(api, count)]
        for api, history in histories:
            line = {"api": api, "history": history, "outcome": outcome_of(api, history)}
            file.write(_encoded(line) + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the digests of the suite")
    parser.add_argument("--dump", type=Path, help="write every outcome to a file")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="folders of recordings")
    parser.add_argument("--count", type=int, default=700, help="broken histories of each API")
    options = parser.parse_args()
    if options.write:
        digests = {api: digests_of(api) for api in READ_APIS}
        GOLDEN.write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
    if options.dump:
        write_dump(options.dump, [FIXTURES, *options.more], options.count)


if __name__ == "__main__":
    main()
