// The smallest page that uses the hooks: it attaches, prompts, shows what comes and answers what it is asked.

import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAcpClient } from "use-acp";

const query = new URLSearchParams(location.search);
const chunk = ({ type, data }) => type === "session_notification" && data.update.sessionUpdate === "agent_message_chunk";

function Page() {
  const [ended, setEnded] = useState("");
  const acp = useAcpClient({ wsUrl: query.get("ws"), reconnectAttempts: 0 });
  const { agent, connectionState, notifications, pendingPermission, resolvePermission, availableCommands } = acp;
  useEffect(() => {
    if (!agent) return;
    (async () => {
      await agent.initialize({ protocolVersion: 1, clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } } });
      const { sessionId } = await agent.newSession({ cwd: query.get("cwd"), mcpServers: [] });
      const prompt = [{ type: "text", text: query.get("prompt") }];
      setEnded((await agent.prompt({ sessionId, prompt })).stopReason);
    })().catch((error) => setEnded(`failed: ${error.message ?? JSON.stringify(error)}`));
  }, [agent]);
  const allow = () => resolvePermission({ outcome: { outcome: "selected", optionId: "allow_once" } });
  const text = notifications.filter(chunk).map(({ data }) => data.update.content.text).join("");
  return (
    <main>
      <p id="state">{connectionState.status}</p>
      <p id="text">{text}</p>
      <p id="commands">{availableCommands.map(({ name }) => name).join(" ")}</p>
      {pendingPermission && <button id="allow" onClick={allow}>{pendingPermission.toolCall.title}</button>}
      <p id="ended">{ended}</p>
    </main>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Page />);
