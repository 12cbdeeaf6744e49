"""acp-mcp shows our agents as MCP tools. Usage: mcp_tools.py BASE_URL PATH_OF_ACP_MCP"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    bridge = StdioServerParameters(command=sys.argv[2], args=[sys.argv[1]])
    async with stdio_client(bridge) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        assert "run_agent" in [tool.name for tool in (await session.list_tools()).tools]
        told = [{"parts": [{"content": "hi", "content_type": "text/plain"}]}]
        result = await session.call_tool("run_agent", {"agent": "echo", "input": told})
        assert not result.isError, result
        print(result.content[0].text)


asyncio.run(main())
