"""The help desk of a shop: the tools of the demo, as a user of the library writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from lutumpy import (
    Skip,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)

__all__: list[str] = []


class Order(BaseModel):
    item: str
    price: float
    carrier: str
    parcel: str


class Parcel(BaseModel):
    status: str
    place: str


Shop = Mapping[int, Order]

SHOP: Shop = {
    1042: Order(item="kettle", price=39.5, carrier="north", parcel="NP-77"),
    1043: Order(item="teapot", price=24.0, carrier="south", parcel="SX-12"),
}
PARCELS = {
    "NP-77": Parcel(status="delayed", place="sorting centre"),
    "SX-12": Parcel(status="out for delivery", place="your town"),
}


@tool_fn(effect="read")
async def get_order(order_id: int, *, shop: Skip[Shop]) -> Order:
    """Look an order up.

    Args:
        order_id: The number of the order.
    """
    return shop[order_id]


@tool_input(name="track_parcel", effect="read")
class TrackParcel(ToolInput[Parcel]):
    """Find out where a parcel is."""

    carrier: Literal["north", "south"]
    """Who carries it."""
    number: str
    """The parcel's number."""


@tool_input(name="refund")
class Refund(ToolInput[str]):
    """Pay a part of the price back."""

    order_id: int
    percent: Annotated[int, Field(ge=1, le=50, description="How much of the price, in percent.")]


@tool_input(name="cancel_order")
class CancelOrder(ToolInput[None]):
    """Cancel an order."""

    order_id: int


class _HelpDesk(Toolset):  # private: a published name would need its types written out
    get_order = tool(get_order)
    track_parcel = tool(TrackParcel)
    refund = tool(Refund)
    cancel_order = tool(CancelOrder, off=True)
