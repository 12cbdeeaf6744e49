"""acp-sdk's own server with two agents, to be measured beside ours. Usage: reference.py PORT"""

import sys
from collections.abc import AsyncIterator

from acp_sdk.models import Message, MessagePart
from acp_sdk.server import Server

server = Server()


@server.agent()
async def echo(input: list[Message]) -> AsyncIterator[Message]:
    """Says what it was told."""
    for message in input:
        yield message


@server.agent()
async def parts(input: list[Message]) -> AsyncIterator[MessagePart]:
    """Says as many words as it was told, one at a time."""
    for number in range(int(str(input[0]))):
        yield MessagePart(content=f"word{number} ")


server.run(port=int(sys.argv[1]), self_registration=False)
