"""beeai-framework's ACPAgent says two things to our echo. Usage: beeai.py BASE_URL"""

import asyncio
import json
import sys

import uvicorn.config

# acp-sdk 1.0.3 names a type that uvicorn dropped in 0.36, and beeai-framework one that it added in 0.36:
# without this line no version of uvicorn lets the adapter be imported.
uvicorn.config.LoopSetupType = getattr(uvicorn.config, "LoopFactoryType", str)

from beeai_framework.adapters.acp.agents import ACPAgent  # noqa: E402
from beeai_framework.memory import UnconstrainedMemory  # noqa: E402


async def main():
    agent = ACPAgent(agent_name="echo", url=sys.argv[1], memory=UnconstrainedMemory())
    await agent.check_agent_exists()
    heard = [(await agent.run(text)).output[-1].text for text in ("hello", "again")]
    print(json.dumps(heard))


asyncio.run(main())
