"""What `Annotated` says of a parameter: its default and its description (rules D2 to D4)."""

import warnings
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc, NotRequired, TypedDict

from lutumpy import (
    DeclarationError,
    ToolFn,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.tools.docstrings import read_docstring
from lutumpy.tools.tool import compiled_tool


def shown_description(declared: ToolFn[..., Any], name: str) -> Any:
    return declared.definition.input_schema["properties"][name].get("description")


async def test_a_default_in_the_annotation_is_the_default_D4() -> None:
    @tool_fn
    def wait(
        seconds: Annotated[float, Field(default=5.0)],
        tags: Annotated[list[str], Field(default_factory=lambda: ["all"], description="Which.")],
        own: Annotated[int, Field(default=1)] = 2,
        *,
        place: str,
    ) -> str:
        """Wait."""
        return f"{seconds} {tags} {own} {place}"

    class Waiting(Toolset):
        wait_tool = tool(wait)

    schema = wait.definition.input_schema
    assert schema["required"] == ["place"]
    assert schema["properties"]["seconds"] == {"default": 5.0, "type": "number"}
    assert schema["properties"]["own"]["default"] == 2
    call = Waiting.parse(ToolMetadata("c1", "wait", '{"place": "here"}'))
    assert call.arguments == {"seconds": 5.0, "tags": ["all"], "own": 2, "place": "here"}
    assert await call.call() == "5.0 ['all'] 2 here"
    # However a tool was offered, `null` for what isn't nullable means its default (rule D5).
    assert (
        Waiting.parse(ToolMetadata("c2", "wait", '{"seconds": null, "place": "x"}')).arguments[
            "seconds"
        ]
        == 5.0
    )


def test_a_renamed_parameter_keeps_the_default_of_its_annotation_D4() -> None:
    @tool_fn
    def send(copy: Annotated[int, Field(default=3)]) -> None:
        """Send."""

    assert "required" not in send.definition.input_schema
    assert compiled_tool(send).arguments(send.Input()) == {"copy": 3}


def test_texts_in_annotations_are_descriptions_D3() -> None:
    @dataclass
    class Place:
        street: Annotated[str, "Its name."]

    class Item(TypedDict):
        count: NotRequired[Annotated[int, Doc("How many.")]]

    class Order(BaseModel):
        note: Annotated[str, "For the cook."]

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool_fn
        def order(
            plain: Annotated[int, "How many."],
            doc: Annotated[int, Doc("Which\n    one.")],
            other: Annotated[int, object(), SimpleNamespace(documentation="Of another library.")],
            field: Annotated[int, Field(gt=0)],
            place: Place,
            item: Item,
            notes: Order,
        ) -> None:
            """Order.

            Args:
                field: Above zero.
            """

        @tool_input(output=None)
        class Cancel(BaseModel):
            """Cancel."""

            number: Annotated[int, "Of the order."]

    assert [shown_description(order, name) for name in ("plain", "doc", "other", "field")] == [
        "How many.",
        "Which\none.",
        "Of another library.",
        "Above zero.",
    ]
    definitions = order.definition.input_schema["$defs"]
    assert definitions["Place"]["properties"]["street"]["description"] == "Its name."
    assert definitions["Item"]["properties"]["count"]["description"] == "How many."
    assert definitions["Order"]["properties"]["note"]["description"] == "For the cook."
    schema = compiled_tool(Cancel).definition.input_schema
    assert schema["properties"]["number"]["description"] == "Of the order."


def test_a_text_that_the_model_is_not_told_is_warned_of_D3() -> None:
    # The warnings are looked at below, and a declaration has several lines.
    with pytest.warns(UserWarning) as caught:  # noqa: PT030, PT031

        @tool_fn
        def count(
            a: Annotated[int, "kilograms", Field(description="How heavy.")],
            b: Annotated[int, "two"],
            c: list[Annotated[int, "each"]],
            d: Annotated[int, "same"],
        ) -> None:
            """Count.

            Args:
                b: Second.
                d: same
            """

        @tool_input(output=None)
        class Weigh(BaseModel):
            """Weigh."""

            x: Annotated[int, "kilograms"] = Field(description="How heavy.")

    problems = [
        str(warning.message).partition(" None` ")[2] or str(warning.message) for warning in caught
    ]
    assert problems == [
        "describes 'a' as 'kilograms', but the model is told 'How heavy.'",
        "describes 'b' as 'two', but the model is told 'Second.'",
        "describes something inside 'c' as 'each', which the model is not told; "
        "use Field(description=...) there",
        "the body of `class Weigh` describes 'x' as 'kilograms', "
        "but the model is told 'How heavy.'",
    ]
    assert {warning.filename for warning in caught} == {__file__}
    assert shown_description(count, "a") == "How heavy."


def test_fields_whose_annotations_can_not_be_resolved_again_have_no_text_D3() -> None:
    class Local(BaseModel):
        x: int

    @dataclass
    class Holder:
        it: "Local"

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool_fn
        def hold(holder: Holder) -> None:
            """Hold."""

    assert "description" not in hold.definition.input_schema["$defs"]["Holder"]["properties"]["it"]


def test_a_docstring_that_begins_with_a_section_is_read_D3() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of the tool: that warning isn't meant here.
        warnings.filterwarnings("ignore", message=".*no description")

        @tool_fn
        def f(x: int, y: int = 1) -> None:
            """Args:
                x: The first.
                    In two lines.
                y: The second.
            """  # fmt: skip

        @tool_fn
        def g(x: int) -> None:
            """
            Args:
                x: The first.

            Returns:
                Nothing.
            """

    assert f.definition.description == g.definition.description == ""
    assert (shown_description(f, "x"), shown_description(f, "y")) == (
        "The first.\nIn two lines.",
        "The second.",
    )
    assert shown_description(g, "x") == "The first."


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    x: The x.\n\n    Returns:\n        The y.",
        "Args:\n    x: The x.\nReturns:\n    The y.",
        "Args:\nx: The x.\nReturns:\n    The y.",
        "\n    Args:\n        x: The x.\n    ",
        "Returns:\n    The y.\n\nArgs:\n    x: The x.",
        "Args:\n\n        x: The x.\n        ",
    ],
)
def test_a_section_at_the_beginning_is_read_however_it_is_indented_D3(text: str) -> None:
    docs = read_docstring(text, ["x"])
    assert (docs.description, docs.params, docs.problems) == ("", {"x": "The x."}, ())


def test_a_declaration_error_quotes_the_signature_once_D2() -> None:
    def f(x: open) -> int:  # type: ignore[valid-type]
        """F."""
        return 1

    def g(x: dict[str, Any]) -> int:
        """G."""
        return 1

    def h(x: int) -> open:  # type: ignore[valid-type]
        """H."""

    for function in (f, g, h):
        with pytest.raises(DeclarationError) as caught:
            tool_fn(function, strict=True)
        assert str(caught.value).count(f"{function.__name__}(x: ") == 1, caught.value
        assert str(caught.value).startswith(f"`{function.__name__}(x: ")
