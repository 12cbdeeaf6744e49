"""An agent whose model is a script in this process: it does what it is told."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types


def said(*parts):
    return types.Content(role="model", parts=list(parts))


def words(text):
    return types.Part(text=text)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            yield LlmResponse(content=said(words(f"the tool says {last.function_response.response}")))
            return
        wish = (last.text or "").strip()
        if wish == "tool":
            yield LlmResponse(content=said(call("add", a=1, b=2)))
        elif wish == "ask":
            yield LlmResponse(content=said(call("paint", colour="blue")))
        elif wish == "wait":
            if stream:
                yield LlmResponse(content=said(words("working ")), partial=True)
            await asyncio.sleep(600)
        elif wish == "fail":
            raise ValueError("failed on purpose")
        else:
            if stream:
                for word in ("hello ", "from google-adk"):
                    yield LlmResponse(content=said(words(word)), partial=True)
                    await asyncio.sleep(0)
            yield LlmResponse(content=said(words("hello from google-adk")))


def add(a: int, b: int) -> dict:
    """Adds two numbers."""
    return {"sum": a + b}


def paint(colour: str) -> dict:
    """Paints the house."""
    return {"painted": colour}


tools = [add, FunctionTool(paint, require_confirmation=True)]
root_agent = LlmAgent(name="behind", model=Scripted(model="scripted"), tools=tools)
