"""An editor: the Python SDK of the Agent Client Protocol over stdio."""

import asyncio
import os
import sys

import acp
from acp import schema

GANDER, _, DATA, SESSION, VERB, *WORDS = sys.argv[1:]
LAST = "all done"


class Editor(acp.Client):
    def __init__(self):
        self.said, self.asked, self.changed = [], [], asyncio.Event()

    async def session_update(self, session_id, update, **_):
        if update.session_update in ("agent_message_chunk", "user_message_chunk"):
            self.said.append((update.session_update, update.content.text))
            self.changed.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        self.changed.set()
        if VERB != "answer":
            await asyncio.Event().wait()  # somebody else answers
        option = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    def text(self, *kinds):
        return "".join(text for kind, text in self.said if kind in kinds)

    async def until(self, seen):
        while not seen():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 100)


async def main():
    editor = Editor()
    over = lambda: LAST in editor.text("agent_message_chunk")
    command = (GANDER, "acp", "--data", DATA)
    async with acp.spawn_agent_process(editor, *command, env={"PATH": os.environ["PATH"], "HOME": DATA}) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        # Any folder but the data directory, which is nobody's to work in.
        await agent.load_session(session_id=SESSION, cwd=os.getcwd(), mcp_servers=[])
        if VERB == "watch":
            await editor.until(lambda: editor.asked)
            print("asked", flush=True)
            await editor.until(over)
            print(editor.text("agent_message_chunk"), flush=True)
        elif VERB == "answer":
            await editor.until(over)
            print("untold")  # an editor does not hear whether its answer counted
        elif VERB == "say":
            result = await agent.prompt(session_id=SESSION, prompt=[acp.text_block(WORDS[0])])
            assert result.stop_reason == "end_turn", result
        else:
            print(editor.text("agent_message_chunk", "user_message_chunk"), flush=True)


asyncio.run(main())
