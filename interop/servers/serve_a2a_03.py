"""a2a-sdk's own server (0.3) with one agent that does what it is told. Usage: serve_a2a_03.py PORT"""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, Part, TaskState, TextPart
from a2a.utils import new_task

URL = f"http://127.0.0.1:{sys.argv[1]}"


def words(text):
    return Part(root=TextPart(text=text))


def data(kind, value):
    """As Google's ADK tells of its tools."""
    return Part(root=DataPart(data=value, metadata={"adk_type": kind}))


class Behind(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        wish = context.get_user_input().strip()
        if task is not None and task.status.state == TaskState.input_required:
            await updater.add_artifact([words(f"you chose {wish}")])
            return await updater.complete()
        await updater.start_work()
        if wish == "tool":
            call = {"id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
            await updater.start_work(updater.new_agent_message([data("function_call", call)]))
            result = {"id": "c1", "name": "add", "response": {"sum": 3}}
            await updater.start_work(updater.new_agent_message([data("function_response", result)]))
            await updater.add_artifact([words("the sum is 3")])
        elif wish == "ask":
            return await updater.requires_input(updater.new_agent_message([words("Which colour?")]), final=True)
        elif wish == "wait":
            await updater.add_artifact([words("working ")], artifact_id="a1", last_chunk=False)
            await asyncio.sleep(600)
        elif wish == "fail":
            return await updater.failed(updater.new_agent_message([words("failed on purpose")]))
        else:
            await updater.add_artifact([words("hello ")], artifact_id="a1", last_chunk=False)
            await updater.add_artifact([words("from a2a-sdk")], artifact_id="a1", append=True, last_chunk=True)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="behind",
    description="Does what it is told",
    version="1.0.0",
    url=f"{URL}/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="do", name="do", description="Does what it is told", tags=["do"])],
)
handler = DefaultRequestHandler(agent_executor=Behind(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
