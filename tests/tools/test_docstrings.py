"""Docstrings (rule D3).

Read alone, as a declaration would turn the problems into warnings.
"""

import sys
import warnings
from typing import ClassVar, Generic, TypeVar

import pytest
from pydantic import BaseModel, RootModel

from lutumpy import tool_fn, tool_input
from lutumpy.tools.docstrings import attribute_docstrings, read_docstring
from lutumpy.tools.tool import compiled_tool

T = TypeVar("T")

GOOGLE = """Search the web.

Of today, in English.

Args:
    query: What to look for.
        As words.
    limit (int, optional): How many.

Returns:
    The hits.
"""
NUMPY = """Search the web.

Of today, in English.

Parameters
----------
query : str
    What to look for.
    As words.
limit : int, optional
    How many.

Returns
-------
list
    The hits.
"""
SPHINX = """Search the web.

Of today, in English.

:param query: What to look for.
    As words.
:param int limit: How many.
:returns: The hits.
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_say_the_same_D3(text: str) -> None:
    docs = read_docstring(text, ["query", "limit"])
    assert docs.description == "Search the web.\n\nOf today, in English."
    assert docs.params == {"query": "What to look for.\nAs words.", "limit": "How many."}
    assert docs.problems == ()


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_an_entry_for_no_parameter_is_named_D3(text: str) -> None:
    docs = read_docstring(text, ["query"])
    assert docs.problems == ("documents 'limit', which is not a parameter",)
    assert read_docstring(text, ["query"], skipped=["limit"]).problems == ()


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_no_docstring_says_nothing_D3(text: str | None) -> None:
    assert read_docstring(text, ["a"]).description == ""


@pytest.mark.parametrize(
    "text",
    [
        "Just text.",
        "Just text.\n\nNote: not a section of parameters.",
        "A list:\n\n* one\n* two",
        "Uses :memory: by default.",
    ],
)
def test_text_without_sections_is_the_description_D3(text: str) -> None:
    docs = read_docstring(text, ["query"])
    assert (docs.description, docs.problems) == (text, ())


READ = {
    "keyword args": "S.\n\nKeyword Args:\n    query: What.\n",
    "other parameters": "S.\n\nOther Parameters\n----------------\nquery : str\n    What.\n",
    "google, other parameters": "S.\n\nOther Parameters:\n    query: What.\n",
    "two at once": "S.\n\nParameters\n----------\nquery, limit : int\n    What.\n",
    "google, two at once": "S.\n\nArgs:\n    query, limit: What.\n",
    "attributes": "S.\n\nAttributes:\n    query: What.\n",
    "ivar": "S.\n\n:ivar query: What.\n",
    "note before": "S.\n\nArgs:\n    query: What.\n\nNote:\n    Slow.\n",
    "returns in one line": "S.\n\nArgs:\n    query: What.\n\nReturns: The hits.\n",
}


@pytest.mark.parametrize("text", READ.values(), ids=READ.keys())
def test_less_common_sections_are_read_D3(text: str) -> None:
    docs = read_docstring(text, ["query", "limit"])
    assert docs.params["query"] == "What."
    assert docs.description == "S."
    assert docs.problems == ()


def test_stars_do_not_belong_to_the_name_D3() -> None:
    assert read_docstring("S.\n\nArgs:\n    *query: What.\n", ["query"]).params == {
        "query": "What."
    }


UNREAD = {
    "lower case title": "S.\n\nargs:\n    query: What.\n",
    "no colon after the title": "S.\n\nArgs\n    query: What.\n",
    "no colon after the name": "S.\n\nArgs:\n    query What.\n",
    "no indentation": "S.\n\nArgs:\nquery: What.\n",
    "indentation lost": "S.\n\nArgs:\n    limit: How many.\nquery: What.\n",
    "too much indentation": "S.\n\nArgs:\n    limit: How many.\n      query: What.\n",
    "underline too short": "S.\n\nParameters\n---\nquery : str\n    What.\n",
    "epytext": "S.\n\n@param query: What.\n",
    "unfinished field": "S.\n\n:param query What.\n",
    "twice": "S.\n\nArgs:\n    query: What.\n\nArgs:\n    limit: How many.\n",
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD.keys())
def test_what_can_not_be_read_is_said_D3(text: str) -> None:
    docs = read_docstring(text, ["query", "limit"])
    assert "query" not in docs.params
    assert docs.problems


class Base(BaseModel):
    name: str
    """The name."""


class Derived(Base, Generic[T]):
    size: int
    """The size,
    in bytes.
    """
    constant: ClassVar = 3
    other: int


def test_strings_under_attributes_are_their_descriptions_D3() -> None:
    assert attribute_docstrings(Base) == {"name": "The name."}
    assert attribute_docstrings(Derived) == {"size": "The size,\nin bytes."}


class Page(BaseModel, Generic[T]):
    """One page of them.

    Args:
        found: What is on it.
    """

    found: T


class Shelf(BaseModel):
    page: Page[str]


def test_a_generic_class_is_described_whatever_its_parameters_D3() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool_fn
        def turn(page: Page[int], shelf: Shelf) -> None:
            """Turn it."""

        read = tool_input(name="read", output=None)(Page[str])

    definitions = turn.definition.input_schema["$defs"]
    for name, kind in (("Page_int_", "integer"), ("Page_str_", "string")):
        assert definitions[name]["description"] == "One page of them."
        assert definitions[name]["properties"]["found"] == {
            "description": "What is on it.",
            "type": kind,
        }
    assert "description" not in definitions["Shelf"]
    assert compiled_tool(read).definition.description == "One page of them."


def test_a_root_model_of_pydantic_has_no_description_of_a_user_D3() -> None:
    @tool_fn
    def turn(pages: RootModel[list[int]]) -> None:
        """Turn them."""

    assert turn.definition.input_schema["properties"]["pages"].get("description") is None


def test_classes_without_source_have_none_D3() -> None:
    space: dict[str, type] = {}
    exec("class Made:\n    name: str\n    'The name.'\n", space)
    assert attribute_docstrings(space["Made"]) == {}
    assert attribute_docstrings(type("Made", (), {})) == {}
    assert attribute_docstrings(type(sys)) == {}


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_tool_without_any_description_is_said_aloud_D3(text: str) -> None:
    def search(words: str) -> str:
        return words

    search.__doc__ = text
    with pytest.warns(UserWarning, match="'search' has no description") as caught:
        declared = tool_fn(search)
    assert declared.definition.description == ""
    assert [warning.filename for warning in caught] == [__file__]  # the line of the declaration
    with pytest.warns(
        UserWarning, match="`class Undescribed`: the tool 'undescribed' has no description"
    ):

        @tool_input(output=None)
        class Undescribed(BaseModel):
            words: str

    with pytest.warns(UserWarning, match="has no description"):
        # It is on purpose, and a model still knows nothing of the tool.
        tool_fn(search, name="find", description="")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tool_fn(search, description="Search.")
