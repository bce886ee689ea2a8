"""Quick start on Amazon Bedrock: the clerk of a shop, without an event loop.

Run:    python examples/quickstart_bedrock.py            a scripted model, no key
        python examples/quickstart_bedrock.py --live     Converse, with credentials and a region
                                                         where boto3 finds them;
                                                         --model NAME for another model
Prints: the calls with their results, the answer, and why the model stopped.
"""

from __future__ import annotations

import argparse

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    Skip,
    ToolError,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10

Stock = dict[str, int]


@tool_fn(effect="read")
def in_stock(item: str, *, stock: Skip[Stock]) -> int:
    """How many of an item there are."""
    return stock.get(item, 0)


@tool_fn
def reserve(item: str, count: int, *, stock: Skip[Stock]) -> str:
    """Put some of an item aside.

    Args:
        item: Its name.
        count: How many.
    """
    if stock.get(item, 0) < count:
        raise ToolError(f"there are only {stock.get(item, 0)}")
    stock[item] -= count
    return f"{count} put aside"


class Shop(Toolset):
    in_stock = tool(in_stock)
    reserve = tool(reserve)


def talk(llm: Model, question: str, stock: Stock) -> TurnResult | None:
    """Ask until there is an answer; `None` when there was none."""
    session = Session()
    session.push_system("You are the clerk of a shop. Answer in one sentence.")
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match session.text_turn(llm, tools=Shop, max_output_tokens=500).collect_sync():
            case Finished(result=result):
                return result
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(call.call_sync(stock=stock)))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(
                        f"{call.metadata.name} {call.metadata.arguments} -> {results[-1].content}"
                    )
                for issue in round.issues:
                    print(f"{issue.metadata.name} {issue.metadata.arguments} -> {issue.detail}")
                round.commit(session, results)
    return None


SCRIPT = [
    Reply(text="I look.", calls=[Call("in_stock", {"item": "kettle"})]),
    Reply(
        calls=[
            Call("reserve", {"item": "kettle", "count": 3}),
            Call("reserve", {"item": "kettle", "count": "some"}),
        ]
    ),
    Reply(calls=[Call("reserve", {"item": "kettle", "count": 2})]),
    Reply(text="There were two, and both are put aside for you."),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="amazon.nova-micro-v1:0", help="which (%(default)s)")
    options = parser.parse_args()
    llm: Model
    if options.live:
        llm = BedrockConverse(options.model)
    else:
        llm = ScriptedModel(SCRIPT, api="bedrock_converse")
    try:
        result = talk(llm, "I need three kettles; or as many as there are.", {"kettle": 2})
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    if result is None:
        print(f"No answer after {MAX_ROUNDS} rounds.")
    else:
        print(result.text)
        print(f"finished: {result.finish_reason}")


if __name__ == "__main__":
    main()
