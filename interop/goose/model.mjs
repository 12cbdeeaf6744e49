// A model on loopback that speaks chat completions, for the real goose.
import { createServer } from "node:http";

/** A model that calls the shell once and then tells what it said. */
export const model = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const { messages = [], tools = [], stream } = body ? JSON.parse(body) : {};
    const chunk = (delta, finish_reason = null, usage) => {
      const choice = { index: 0, delta, finish_reason };
      const data = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "mock", choices: [choice], usage };
      response.write(`data: ${JSON.stringify(data)}\n\n`);
    };
    if (!stream) {
      const message = { role: "assistant", content: "A title" };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "mock", choices }));
      return;
    }
    response.setHeader("content-type", "text/event-stream");
    const shell = tools.map((tool) => tool.function.name).find((name) => name.endsWith("shell") || name === "bash");
    const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    if (shell && !messages.some((message) => message.role === "tool")) {
      const call = { index: 0, id: "call_1", type: "function" };
      chunk({ role: "assistant", content: "Let me look. " });
      chunk({ tool_calls: [{ ...call, function: { name: shell, arguments: '{"command":"echo marco"}' } }] });
      chunk({}, "tool_calls", usage);
    } else {
      ["It says ", "marco", "."].forEach((content) => chunk({ content }));
      chunk({}, "stop", usage);
    }
    response.end("data: [DONE]\n\n");
  });
});
await new Promise((resolve) => model.listen(0, "127.0.0.1", resolve));
/** What goes into OPENAI_HOST. */
export const host = `http://127.0.0.1:${model.address().port}`;
