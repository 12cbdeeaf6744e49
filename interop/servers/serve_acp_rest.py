"""acp-sdk's own server with one agent that does what it is told. Usage: serve_acp_rest.py PORT"""

import asyncio
import sys
from collections.abc import AsyncGenerator

from acp_sdk.models import ACPError, Error, ErrorCode, Message, MessageAwaitRequest, MessagePart, TrajectoryMetadata
from acp_sdk.server import RunYield, RunYieldResume, Server

server = Server()


@server.agent()
async def behind(input: list[Message]) -> AsyncGenerator[RunYield, RunYieldResume]:
    """Says, calls a tool, asks, waits or fails."""
    wish = str(input[-1]).strip()
    if wish == "tool":
        done = TrajectoryMetadata(tool_name="add", tool_input={"a": 1, "b": 2}, tool_output={"sum": 3})
        yield MessagePart(content="added", metadata=done)
        yield "the sum is 3"
    elif wish == "ask":
        answer = yield MessageAwaitRequest(message=Message(role="agent", parts=[MessagePart(content="Which colour?")]))
        yield f"you chose {answer.message}"
    elif wish == "wait":
        yield "working "
        await asyncio.sleep(600)
    elif wish == "fail":
        raise ACPError(Error(code=ErrorCode.SERVER_ERROR, message="failed on purpose"))
    else:
        yield "hello "
        yield "from acp-sdk"


server.run(port=int(sys.argv[1]), self_registration=False)
