"""How often `search_tools` finds the tool that a question needs, with bm25s beside.

    python -m pip install --no-deps bfcl-eval bm25s
    python tests/benchmarks/bench_search.py

The questions and functions are those of the Berkeley Function-Calling Leaderboard (Apache-2.0) that
have one turn and an answer: 2,501 questions, 2,101 functions that differ in name or description. A
question needs one function or more; the recall is how many of their names are among the first so
many. `LUTUMPY_BFCL` may name a folder with the files, `BFCL_v4_....json` and `possible_answer/`.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lutumpy.tools.search import _Index
from lutumpy.tools.search_words import FILLERS, ToolWords, find_words, read_tool, stem

CATEGORIES = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel"),
    *("parallel_multiple", "live_simple", "live_multiple", "live_parallel"),
    "live_parallel_multiple",
)
Question = tuple[str, set[str]]
Rank = Callable[[str], list[int]]


def find_data() -> Path | None:
    """The folder with the files of the leaderboard."""
    if "LUTUMPY_BFCL" in os.environ:
        return Path(os.environ["LUTUMPY_BFCL"])
    # Found without being imported: it needs much that nobody needs here.
    spec = importlib.util.find_spec("bfcl_eval")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) / "data" if places else None


def read_lines(file: Path) -> Iterable[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def read_data(folder: Path) -> tuple[list[ToolWords], list[Question]]:
    """The functions, and each question with the names of those that it needs."""
    functions: dict[tuple[str, str], dict[str, Any]] = {}
    questions: list[Question] = []
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        answers = {row["id"]: row for row in read_lines(folder / "possible_answer" / name)}
        for row in read_lines(folder / name):
            for function in row["function"]:
                functions.setdefault((function["name"], function["description"]), function)
            offered = {function["name"] for function in row["function"]}
            called = {name for call in answers[row["id"]]["ground_truth"] for name in call}
            said = [m for turn in row["question"] for m in turn if m["role"] == "user"]
            questions.append((" ".join([m["content"] for m in said]), called & offered))
    tools = [read_tool(*key, function["parameters"]) for key, function in functions.items()]
    return tools, questions


def recall(tools: list[ToolWords], questions: list[Question], rank: Rank, most: int) -> float:
    total = 0.0
    for question, needed in questions:
        found = {tools[place].name for place in rank(question)[:most]}
        total += len(found & needed) / len(needed)
    return total / len(questions)


def names_and_descriptions(tools: list[ToolWords]) -> list[ToolWords]:
    return [ToolWords(tool.name, tool.description, "", "", "") for tool in tools]


def rank_by_bm25s(tools: list[ToolWords]) -> Rank | None:
    """bm25s over the same words, all of them in one field."""
    if importlib.util.find_spec("bm25s") is None:
        return None
    import bm25s  # type: ignore[import-not-found,unused-ignore]

    fillers = set(map(stem, FILLERS))
    words = [[word for text in tool for word in find_words(text)] for tool in tools]
    retriever = bm25s.BM25()
    retriever.index(words, show_progress=False)

    def rank(question: str) -> list[int]:
        asked = list(dict.fromkeys([w for w in find_words(question) if w not in fillers]))
        places, _ = retriever.retrieve([asked], k=10, show_progress=False)
        return [int(place) for place in places[0]]

    return rank


def main() -> None:
    folder = find_data()
    if folder is None:
        print("no data: python -m pip install --no-deps bfcl-eval, or set LUTUMPY_BFCL")
        return
    tools, questions = read_data(folder)
    print(f"{len(tools)} functions, {len(questions)} questions: recall in the first 1, 5, 10")
    rankings: list[tuple[str, Rank | None]] = [
        ("names and descriptions", _Index(names_and_descriptions(tools)).rank),
        ("search_tools", _Index(tools).rank),
        ("bm25s, the same words", rank_by_bm25s(tools)),
    ]
    for label, rank in rankings:
        if rank is None:
            print(f"{label:24} not installed")
            continue
        numbers = [recall(tools, questions, rank, most) for most in (1, 5, 10)]
        print(f"{label:24} " + "  ".join([f"{number:.3f}" for number in numbers]))


if __name__ == "__main__":
    main()
