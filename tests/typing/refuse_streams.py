"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_streams import Closed, Open, Read, Text

from lutumpy import Session, ToolCallReady
from lutumpy.adapters.openai import OpenAIChat


async def wrong(session: Session, llm: OpenAIChat) -> None:
    async with session.text_turn(llm, tools=Closed).stream() as stream:
        async for event in stream:
            if isinstance(event, ToolCallReady) and Closed.read.matches(event.call):
                event.call.complete(["a list"])  # refused
                event.call.input.words  # refused
    stream.outcome.text  # refused
    for one in Open.offer().reader(llm, session).feed({}):  # refused
        print(one)
    value = (await session.structured_turn(llm, Text).collect()).value
    value.text  # refused
    session.structured_turn(llm, Text, tools=Read)  # refused
