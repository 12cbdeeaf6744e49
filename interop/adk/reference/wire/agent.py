"""An agent whose model is a script in this process: it costs as little as a model can."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def said(text):
    return types.Content(role="model", parts=[types.Part(text=text)])


class Scripted(BaseLlm):
    """`many N` is answered with so many words, one at a time; anything else with a greeting."""

    async def generate_content_async(self, llm_request, stream=False):
        asked = llm_request.contents[-1].parts[0].text.split()
        words = ["Hello", ", ", "world!"]
        if asked[0] == "many":
            words = [f"word{number} " for number in range(int(asked[1]))]
        if stream:
            for word in words:
                yield LlmResponse(content=said(word), partial=True)
                await asyncio.sleep(0)  # else nothing is sent before the end
        yield LlmResponse(content=said("".join(words)))


root_agent = LlmAgent(name="wire", model=Scripted(model="scripted"))
