"""Input classes refuse unknown arguments as functions do, unless their config allows them (D10)."""

import dataclasses
import json
from functools import partial
from types import FrameType
from typing import Annotated, Any, Literal

import pytest
from counting import profiled
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    model_validator,
)
from pydantic_core import core_schema
from typing_extensions import TypedDict

from lutumpy import (
    InvalidArgumentsError,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.tools.closed import _ClosedCopy


def toolset_of(declared: Any) -> type[Toolset]:
    return type("One", (Toolset,), {"one": tool(declared)})


def declare(cls: Any) -> type[Toolset]:
    return toolset_of(tool_input(cls, name="one", output=None, description="A tool."))


def parse(tools: type[Toolset], arguments: object) -> Any:
    call: Any = tools.parse(ToolMetadata("c1", "one", json.dumps(arguments)))
    return call.input


def refusal(tools: type[Toolset], arguments: object) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        parse(tools, arguments)
    return caught.value.detail


def schema(tools: type[Toolset]) -> dict[str, Any]:
    return tools.definitions()[0].input_schema


class Order(BaseModel):
    title: str
    copies: int = 1


class OrderInput(ToolInput[None]):
    title: str
    copies: int = 1


def order(title: str, copies: int = 1) -> None: ...


TYPO = {"title": "Dune", "copie": 5}


@pytest.mark.parametrize("cls", [Order, OrderInput])
def test_an_unknown_argument_is_an_issue_for_classes_as_for_functions_D10(
    cls: type[BaseModel],
) -> None:
    tools = declare(
        type(cls.__name__, (cls,), {"__module__": __name__, "__doc__": "Order a book."})
    )
    function = toolset_of(tool_fn(order, name="one", description="Order a book."))
    assert (
        refusal(tools, TYPO) == refusal(function, TYPO) == "copie: Extra inputs are not permitted"
    )
    assert schema(tools) == schema(function)
    assert schema(tools)["additionalProperties"] is False
    assert parse(tools, {"title": "Dune", "copies": 2}).copies == 2


def test_the_users_class_stays_as_it_is_D10() -> None:
    class Mine(Order):
        """Order a book."""

    before = (
        Mine.model_json_schema(),
        Mine.__pydantic_validator__,
        Mine.__pydantic_core_schema__,
        Mine.model_config,
    )
    tools = declare(Mine)
    refusal(tools, TYPO)
    assert (
        Mine.model_json_schema(),
        Mine.__pydantic_validator__,
        Mine.__pydantic_core_schema__,
        Mine.model_config,
    ) == before
    assert Mine.model_validate(TYPO) == Mine(title="Dune")
    assert Mine.model_validate_json(json.dumps(TYPO)) == Mine(title="Dune")
    assert type(parse(tools, {"title": "Dune"})) is Mine


@pytest.mark.parametrize("extra", ["ignore", "allow", "forbid"])
def test_the_classes_own_config_wins_D10(extra: Any) -> None:
    class Base(BaseModel):
        model_config = ConfigDict(extra=extra)

    class Mine(Base):  # a config that is inherited is the class's own
        title: str

    tools = declare(Mine)
    assert (
        schema(tools).get("additionalProperties")
        == {"ignore": None, "allow": True, "forbid": False}[extra]
    )
    if extra == "forbid":
        assert refusal(tools, TYPO) == "copie: Extra inputs are not permitted"
    else:
        assert parse(tools, TYPO).model_extra == ({"copie": 5} if extra == "allow" else None)


class Line(BaseModel):
    isbn: str


class Frozen(BaseModel, extra="forbid"):
    isbn: str


class Basket(BaseModel):
    lines: list[Line]
    frozen: Frozen | None = None


def test_nested_models_follow_their_own_config_D10() -> None:
    tools = declare(Basket)
    assert parse(tools, {"lines": [{"isbn": "1", "shop": "a"}]}) == Basket(lines=[Line(isbn="1")])
    assert refusal(tools, {"lines": [], "frozen": {"isbn": "1", "shop": "a"}}).startswith(
        "frozen.shop: Extra inputs"
    )
    assert refusal(tools, {"lines": [], "shop": "a"}) == "shop: Extra inputs are not permitted"
    definitions = schema(tools)["$defs"]
    assert "additionalProperties" not in definitions["Line"]
    assert definitions["Frozen"]["additionalProperties"] is False


class Tree(BaseModel):
    name: str
    children: "list[Tree]" = []


def test_an_input_class_that_holds_itself_is_closed_at_the_root_D10() -> None:
    tools = declare(Tree)
    assert parse(tools, {"name": "a", "children": [{"name": "b", "size": 1}]}).children == [
        Tree(name="b")
    ]
    assert refusal(tools, {"name": "a", "size": 1}) == "size: Extra inputs are not permitted"
    assert schema(tools)["additionalProperties"] is False
    assert list(schema(tools)["$defs"]) == ["Tree"]
    assert "additionalProperties" not in schema(tools)["$defs"]["Tree"]


class ByTitle(BaseModel):
    kind: Literal["title"]
    title: str


class ByShelf(BaseModel):
    kind: Literal["shelf"]
    shelf: int
    last: ByTitle | None = None


class Anything(BaseModel, extra="ignore"):
    kind: Literal["any"]


class Tagged(RootModel[Annotated[ByTitle | ByShelf | Anything, Field(discriminator="kind")]]):
    """Find a book."""


class Untagged(RootModel[ByTitle | ByShelf | Anything | None]):
    """Find a book."""


@pytest.mark.parametrize("cls", [Tagged, Untagged])
def test_the_branches_of_a_root_union_are_closed_each_by_its_own_config_D10(cls: type[Any]) -> None:
    tools = declare(type(cls.__name__, (cls,), {"__module__": __name__, "__doc__": "Find."}))
    good = {"kind": "shelf", "shelf": 3, "last": {"kind": "title", "title": "a", "shop": 1}}
    for wrap in (lambda value: value, lambda value: {"input": value}):
        assert parse(tools, wrap(good)).root.shelf == 3
        assert parse(tools, wrap({"kind": "any", "shop": 1})).root == Anything(kind="any")
        assert "shop: Extra inputs are not permitted" in refusal(
            tools, wrap({"kind": "title", "title": "a", "shop": 1})
        )
    assert refusal(tools, {"input": good, "also": 1})
    shown = json.dumps(schema(tools))
    # The wrapper and two branches; not the nested ByTitle.
    assert shown.count('"additionalProperties": false') == 3
    branches = schema(tools)["properties"]["input"]
    refs = [
        entry["$ref"] for entry in branches.get("oneOf") or branches["anyOf"] if "$ref" in entry
    ]
    assert len(set(refs)) == 3
    assert all(ref.removeprefix("#/$defs/") in schema(tools)["$defs"] for ref in refs)


class Leaf(BaseModel):
    value: int


class Branch(BaseModel):
    nodes: "list[Node]"


class Node(RootModel["Branch | Leaf"]):
    """A tree."""


def test_a_union_that_holds_itself_is_closed_at_the_root_D10() -> None:
    tools = declare(Node)
    assert parse(tools, {"nodes": [{"value": 1, "more": 2}]}).root.nodes[0].root == Leaf(value=1)
    assert "more: Extra inputs are not permitted" in refusal(tools, {"value": 1, "more": 2})


@dataclasses.dataclass
class Point:
    x: int


class Named(TypedDict):
    name: str


class Open(TypedDict):
    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]
    open: str


class Inner(RootModel[Point | Named]):
    """A root in a root."""


class Mixed(RootModel[Annotated[Inner | Open, AfterValidator(lambda value: value)]]):
    """Point at something."""


def test_dataclasses_and_typed_dictionaries_are_branches_too_D10() -> None:
    tools = declare(Mixed)
    assert parse(tools, {"x": 1}).root.root == Point(1)
    assert parse(tools, {"name": "a"}).root.root == {"name": "a"}
    assert parse(tools, {"open": "a", "y": 2}).root == {"open": "a"}
    assert "Extra inputs are not permitted" in refusal(tools, {"name": "a", "y": 2})
    assert "y: " in refusal(tools, {"x": 1, "y": 2})


class Whole(BaseModel):
    a: int = Field(default=1, validation_alias=AliasChoices("a", "alpha", AliasPath("deep", "a")))

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class Renamed(BaseModel):
    a: int = 1

    def __init__(self, *, old: int | None = None, **values: Any) -> None:
        super().__init__(**({"a": old} if old is not None else values))


def test_a_class_with_an_init_of_its_own_is_closed_D10() -> None:
    tools = declare(Whole)
    for good in ({"a": 2}, {"alpha": 2}, {"deep": {"a": 2}}):
        assert parse(tools, good).a == 2
    assert refusal(tools, {"a": 2, "b": 3, "c": 4}) == (
        "b: Extra inputs are not permitted\nc: Extra inputs are not permitted"
    )
    assert schema(tools)["additionalProperties"] is False
    renamed = declare(Renamed)
    assert parse(renamed, {"old": 5}).a == 5
    assert refusal(renamed, {"older": 5}) == "older: Extra inputs are not permitted"


class Before(BaseModel):
    a: int = 1

    @model_validator(mode="before")
    @classmethod
    def from_old(cls, value: Any) -> Any:
        return {"a": value["old"]} if "old" in value else value

    @model_validator(mode="wrap")
    @classmethod
    def around(cls, value: Any, handler: Any) -> Any:
        return handler(value)


def test_validators_of_the_class_run_before_and_around_it_D10() -> None:
    tools = declare(Before)
    assert parse(tools, {"old": 4}).a == 4
    assert refusal(tools, {"older": 4}) == "older: Extra inputs are not permitted"


class Anyhow(BaseModel):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.no_info_plain_validator_function(lambda value: Anyhow.model_construct())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return {"type": "object"}


def test_what_has_no_fields_of_pydantic_is_left_alone_D10() -> None:
    class Words(RootModel[list[Line]]):
        """Lines."""

    tools = declare(Words)
    assert parse(tools, {"input": [{"isbn": "1", "shop": "a"}]}).root == [Line(isbn="1")]
    assert type(parse(declare(Anyhow), {"b": 1})) is Anyhow


def test_the_classes_validator_is_used_where_nothing_is_to_be_closed_D10() -> None:
    from lutumpy.tools.closed import (  # which of two equal validators runs can't be seen
        closed_schema,
        closed_validator,
    )

    assert closed_validator(Frozen) is Frozen.__pydantic_validator__
    assert closed_schema(Frozen.__pydantic_core_schema__) is Frozen.__pydantic_core_schema__
    assert closed_validator(Order) is not Order.__pydantic_validator__


def test_a_good_call_of_a_class_costs_one_validation_and_one_object_D10() -> None:
    class Mine(Order):
        """Order a book."""

    tools = declare(Mine)
    metadata = ToolMetadata("c1", "one", json.dumps({"title": "Dune"}))
    tools.parse(metadata)  # the first one makes the validator
    entered: list[str] = []

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    profiled(partial(tools.parse, metadata), profile)
    assert entered == ["parse", "__init__"]


def test_a_value_of_a_structured_turn_follows_its_own_config_D10() -> None:
    """The rule is about tools: what a turn is asked to give is validated as its class says."""
    from lutumpy import Session
    from lutumpy.testing import Reply, ScriptedModel

    session = Session()
    session.push_user("Order Dune.")
    result = session.structured_turn(
        ScriptedModel([Reply(text=json.dumps(TYPO))]), Order
    ).collect_sync()
    assert result.value == Order(title="Dune")


def test_a_union_with_labels_and_an_unknown_reference_are_copied_as_they_are() -> None:
    class Place(BaseModel):
        name: str

    place = Place.__pydantic_core_schema__
    union = core_schema.union_schema([(place, "first"), core_schema.str_schema()])
    closed: Any = _ClosedCopy(union).result
    (labelled, label), text = closed["choices"]
    assert (label, text["type"]) == ("first", "str")
    assert labelled["schema"]["extra_behavior"] == "forbid"
    unknown = core_schema.definition_reference_schema("elsewhere")
    assert _ClosedCopy(unknown).result == unknown
