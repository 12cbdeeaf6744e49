"""a2a-sdk's own server (1.0) with one agent that does what it is told. Usage: serve_a2a.py PORT"""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from google.protobuf import struct_pb2
from starlette.applications import Starlette

URL = f"http://127.0.0.1:{sys.argv[1]}"


def words(text):
    return pb.Part(text=text)


def data(kind, value):
    """As Google's ADK tells of its tools."""
    held = struct_pb2.Value()
    held.struct_value.update(value)
    part = pb.Part(data=held)
    part.metadata.update({"adk_type": kind})
    return part


class Behind(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        wish = context.get_user_input().strip()
        if task is not None and task.status.state == pb.TASK_STATE_INPUT_REQUIRED:
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
            return await updater.requires_input(updater.new_agent_message([words("Which colour?")]))
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


card = pb.AgentCard(name="behind", description="Does what it is told", version="1.0.0")
card.capabilities.streaming = True
card.default_input_modes.append("text/plain")
card.default_output_modes.append("text/plain")
card.skills.add(id="do", name="do", description="Does what it is told", tags=["do"])
card.supported_interfaces.add(url=f"{URL}/", protocol_binding="JSONRPC", protocol_version="1.0")
handler = DefaultRequestHandler(Behind(), InMemoryTaskStore(), card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
