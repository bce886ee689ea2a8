"""Which words of a tool are read, and what a model that makes vectors adds."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from lutumpy import ToolFinder, Toolset, search_tools, tool, tool_fn
from lutumpy.tools.search_words import find_words, read_tool, stem


@tool_fn
def convert(
    amount: float,
    unit: Annotated[Literal["fahrenheit", "celsius"], Field(description="The scale of degrees.")],
) -> str:
    """Turn one measure into another."""
    return ""


@tool_fn
def listOrders(customer_id: str, page: int = 1) -> str:
    """What somebody bought."""
    return ""


@tool_fn
def nothing() -> str:
    """Waits."""
    return ""


class Shop(Toolset):
    convert, orders, nothing = tool(convert), tool(listOrders), tool(nothing)


def names(query: str, **options: Any) -> list[str]:
    return [selector.name for selector in search_tools(Shop, query, **options)]


def test_parameters_their_descriptions_and_their_values_are_searched() -> None:
    for query, name in (
        ("customers", "listOrders"),  # a parameter's name, in another form
        ("CustomerId", "listOrders"),
        ("scales", "convert"),  # its description
        ("Fahrenheit", "convert"),  # one of its values
        ("converting", "convert"),
        ("conversion of celsius", "convert"),
    ):
        assert names(query)[:1] == [name], query
    assert names("xylophone") == []


def test_a_word_counts_most_where_it_says_most() -> None:
    @tool_fn
    def report(text: Annotated[str, Field(description="Tells of the weather.")]) -> str:
        """Write it down."""
        return ""

    @tool_fn
    def weather(place: str) -> str:
        """Look it up."""
        return ""

    class App(Toolset):
        report_, weather_ = tool(report), tool(weather)

    assert search_tools(App, "weather") == [App.weather_, App.report_]


def test_words_beside_each_other_say_more() -> None:
    tools = []
    for name, text in (("a1", "the gross of a total"), ("a2", "the total gross"), ("a3", "none")):

        def run() -> str:
            return ""

        tools.append(tool_fn(name=name, description=text)(run))

    class App(Toolset):
        a1, a2, a3 = tool(tools[0]), tool(tools[1]), tool(tools[2])

    assert search_tools(App, "what is the total gross?") == [App.a2, App.a1]


def test_forms_of_a_word_have_one_stem() -> None:
    for words in (
        ("convert", "converts", "converting", "converted", "converter"),
        ("city", "cities"),
        ("organization", "organizations", "organize", "organizing"),
        ("run", "runs", "running"),
        ("calculate", "calculation", "calculating", "calculates"),
        ("payment", "payments", "pay"),
        ("create", "creating", "creation", "creator"),
    ):
        assert len({stem(word) for word in words}) == 1, [stem(word) for word in words]
    for word in ("id", "gas", "bus", "class", "über", "日本語", "ring", "sing", "red"):
        assert stem(word) == word
    assert list(find_words("listPull-requests")) == [
        *(stem("listpull-requests"), "list", "pull", stem("requests")),
    ]


def test_of_a_schema_names_explanations_and_values_are_read_to_a_limit() -> None:
    schema = {
        "description": "not of a parameter",
        "properties": {
            "a": {"description": "A.", "enum": ["x", 3], "default": {"description": "no"}},
            "b": {"items": [{"properties": {"c": {"const": "y"}}}], "examples": ["no"]},
        },
        "required": ["no"],
        "$defs": {"D": {"anyOf": [{"description": "D."}]}},
    }
    read = read_tool("n", "d", schema)
    assert (read.parameters, read.explanations, read.values) == ("a b c", "A. D.", "x y")
    long = {"properties": {f"p{n}": {"description": "x" * 1000} for n in range(100)}}
    assert len(read_tool("n", "d", long).explanations) < 20_000


# --- vectors --------------------------------------------------------------------------------------


class Model:
    """Knows that a bill is an order, and nothing else."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(len(texts))
        return [[2.0 * ("bill" in text or "Orders" in text), 0.5] for text in texts]


def test_a_model_joins_its_order_to_the_ranking() -> None:
    model = Model()
    assert names("a bill") == []
    # All tools are there; the best of both orders first.
    assert names("a bill", embed=model) == ["listOrders", "convert", "nothing"]
    assert set(names("fahrenheit bill", embed=model)[:2]) == {"convert", "listOrders"}
    assert names("a bill", embed=model, limit=1) == ["listOrders"]
    # The tools' vectors are made once.
    assert model.asked[0] == 3
    assert set(model.asked[1:]) == {1}
    other = Model()
    names("a bill", embed=other)
    assert other.asked == [3, 1]


def test_a_finder_takes_a_model() -> None:
    finder = ToolFinder(Shop, embed=Model(), limit=1)
    assert [selector.name for selector in finder.search("a bill")] == ["listOrders"]
    assert ToolFinder(Shop).find("a bill") != ToolFinder(Shop, embed=Model()).find("a bill")
    assert ToolFinder(Shop).embed is None


def test_what_is_no_vector_is_refused_and_what_a_model_raises_is_raised() -> None:
    for wrong in (
        lambda texts: [],
        lambda texts: [[1.0]] * (len(texts) + 1),
        lambda texts: [[1.0] * (n + 1) for n in range(len(texts))],
        lambda texts: [[] for _ in texts],
        lambda texts: [[1.0] * len(texts) for _ in texts],  # other lengths for the query
        lambda texts: None,
        lambda texts: [1.0 for _ in texts],
    ):
        with pytest.raises(ValueError, match="embed= gave"):
            names("a", embed=wrong)

    def broken(texts: list[str]) -> list[list[float]]:
        raise OSError("no model")

    with pytest.raises(OSError, match="no model"):
        names("a", embed=broken)

    class Empty(Toolset):
        pass

    assert search_tools(Empty, "a", embed=broken) == []


def test_vectors_of_nothing_are_alike_to_all() -> None:
    assert names("a", embed=lambda texts: [[0.0, 0.0] for _ in texts]) == [
        "convert",
        "listOrders",
        "nothing",
    ]
    assert names("wait", embed=lambda texts: [[math.pi] for _ in texts])[0] == "nothing"
