// The small page: sessions, chat and questions over one ACP WebSocket, without a framework. Texts of the agent are only
// ever set as text, never as markup.

const $ = (id) => document.getElementById(id);
const state = { socket: null, calls: new Map(), next: 1, session: null, cwd: null, running: new Set(), tools: new Map(), last: null, pause: 500 };

// What came with the cookie and makes it count. Programs on other ports of this host see the cookie, but not this.
const PAGE_KEY = "gander.pageKey";
const pageKey = () => localStorage.getItem(PAGE_KEY) ?? "";
const keyHeaders = () => ({ "x-gander-page-key": pageKey() });

function show(text) { $("state").textContent = text; }

// The ticket stands behind the #, which browsers send to nobody. It is taken out of the history at once.
async function signIn() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return null;
  history.replaceState(null, "", location.pathname);
  const body = JSON.stringify({ ticket });
  const answer = await fetch("/gander/login", { method: "POST", headers: { "content-type": "application/json" }, body });
  if (answer.ok) {
    localStorage.setItem(PAGE_KEY, (await answer.json()).pageKey);
    return null;
  }
  const refusal = await answer.json().catch(() => null);
  return refusal?.error?.message ?? `sign-in failed: HTTP ${answer.status}`;
}

async function start() {
  const problem = await signIn().catch((error) => String(error));
  const status = await fetch("/gander/status", { headers: keyHeaders() }).catch(() => null);
  if (!status) return retry("The server does not answer.");
  if (status.status === 401) {
    $("login").hidden = false;
    $("app").hidden = $("leave").hidden = true;
    return show(problem ?? "Not signed in.");
  }
  $("login").hidden = true;
  $("app").hidden = $("leave").hidden = false;
  connect();
}

function retry(text) {
  show(`${text} Trying again…`);
  setTimeout(start, state.pause);
  state.pause = Math.min(state.pause * 2, 10000);
}

function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/acp`, ["acp", `gander.page.${pageKey() || "none"}`]);
  state.socket = socket;
  state.calls.clear();
  socket.onopen = () => opened().catch((error) => show(error.message));
  socket.onclose = () => { $("questions").replaceChildren(); retry("Connection lost."); };
  socket.onmessage = (event) => receive(JSON.parse(event.data));
}

function send(message) { state.socket.send(JSON.stringify({ jsonrpc: "2.0", ...message })); }

function call(method, params) {
  const id = state.next++;
  send({ id, method, params });
  return new Promise((resolve, reject) => state.calls.set(id, { resolve, reject }));
}

async function opened() {
  const clientCapabilities = { elicitation: { form: {}, url: {} } };
  await call("initialize", { protocolVersion: 1, clientInfo: { name: "gander-page", version: "1" }, clientCapabilities });
  state.pause = 500;
  show("Connected.");
  await list();
  if (state.session) await load(state.session, state.cwd);
}

function receive(message) {
  if (message.method === undefined) {
    const waiting = state.calls.get(message.id);
    state.calls.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
  } else if (message.method === "session/update") {
    if (message.params.sessionId === state.session) update(message.params.update);
  } else if (message.method === "session/request_permission") {
    askPermission(message);
  } else if (message.method === "elicitation/create") {
    askForm(message);
  } else if (message.method === "$/cancel_request") {
    document.getElementById(`question-${message.params?.requestId ?? message.params?.id}`)?.remove();
  } else if (message.id !== undefined) {
    send({ id: message.id, error: { code: -32601, message: "this page cannot do that" } });
  }
}

async function list(cursor) {
  const { sessions, nextCursor } = await call("session/list", cursor ? { cursor } : {});
  if (!cursor) $("sessions").replaceChildren();
  for (const session of sessions) {
    const button = document.createElement("button");
    const small = document.createElement("small");
    button.textContent = session.title || session.sessionId;
    small.textContent = [session.updatedAt && new Date(session.updatedAt).toLocaleString(), session.cwd].filter(Boolean).join(" · ");
    button.append(small);
    button.dataset.session = session.sessionId;
    button.onclick = () => load(session.sessionId, session.cwd).catch((error) => show(error.message));
    const item = document.createElement("li");
    item.append(button);
    $("sessions").append(item);
  }
  $("more").hidden = !nextCursor;
  $("more").onclick = () => list(nextCursor);
  mark();
}

function mark() {
  for (const button of $("sessions").querySelectorAll("button")) {
    button.setAttribute("aria-current", String(button.dataset.session === state.session));
  }
  $("cancel").hidden = !state.running.has(state.session);
}

function clear(session, cwd, title) {
  Object.assign(state, { session, cwd, last: null });
  state.tools.clear();
  $("chat").replaceChildren();
  $("questions").replaceChildren();
  $("title").textContent = title ?? session;
  mark();
}

async function load(session, cwd) {
  clear(session, cwd);
  await call("session/load", { sessionId: session, cwd, mcpServers: [] });
}

function line(kind, text) {
  const item = document.createElement("li");
  item.className = kind;
  item.textContent = text;
  const chat = $("chat");
  const atEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 60;
  chat.append(item);
  if (atEnd) chat.scrollTop = chat.scrollHeight;
  return item;
}

function say(kind, content) {
  const text = content.type === "text" ? content.text : `[${content.mimeType ?? content.type}]`;
  if (state.last?.kind !== kind) state.last = { kind, item: line(kind, "") };
  state.last.item.append(text);
}

function update(change) {
  switch (change.sessionUpdate) {
    case "user_message_chunk": return say("user", change.content);
    case "agent_message_chunk": return say("agent", change.content);
    case "agent_thought_chunk": return say("thought", change.content);
    case "tool_call":
    case "tool_call_update": return tool(change);
    case "session_info_update": if (change.title) $("title").textContent = change.title; return;
    case "plan": {
      state.last = null;
      line("note", change.entries.map((entry) => `${entry.status === "completed" ? "✓" : "·"} ${entry.content}`).join("\n"));
    }
  }
}

function tool(change) {
  state.last = null;
  const known = state.tools.get(change.toolCallId) ?? { item: line("tool", ""), title: "", status: "" };
  known.title = change.title ?? known.title;
  known.status = change.status ?? known.status;
  known.output = contentText(change.content) || known.output || "";
  known.item.textContent = `${known.status || "pending"} ${known.title}${known.output ? `\n${known.output.slice(0, 4000)}` : ""}`;
  state.tools.set(change.toolCallId, known);
}

function contentText(content) {
  return (content ?? []).map((part) => {
    if (part.type === "diff") return `${part.path}\n- ${part.oldText ?? ""}\n+ ${part.newText}`;
    return part.content?.text ?? "";
  }).filter(Boolean).join("\n");
}

function questionBox(message, title, details) {
  const box = document.createElement("div");
  box.className = "question";
  box.id = `question-${message.id}`;
  box.setAttribute("role", "group");
  const heading = document.createElement("strong");
  heading.textContent = title;
  box.append(heading);
  if (details) {
    const shown = document.createElement("pre");
    shown.textContent = details;
    box.append(shown);
  }
  $("questions").append(box);
  return box;
}

function answerButton(box, message, name, result) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.onclick = () => { send({ id: message.id, result: result() }); box.remove(); };
  box.append(button);
}

function askPermission(message) {
  const { toolCall, options } = message.params;
  const details = [contentText(toolCall.content), toolCall.rawInput && JSON.stringify(toolCall.rawInput, null, 2)].filter(Boolean).join("\n");
  const box = questionBox(message, `Allow this? ${toolCall.title ?? ""}`, details);
  for (const option of options) {
    answerButton(box, message, option.name, () => ({ outcome: { outcome: "selected", optionId: option.optionId } }));
  }
}

function askForm(message) {
  const { message: title, requestedSchema, url } = message.params;
  const box = questionBox(message, title, url);
  const read = [];
  for (const [name, field] of Object.entries(requestedSchema?.properties ?? {})) {
    const label = document.createElement("label");
    label.textContent = field.title ?? name;
    const input = document.createElement(field.enum ? "select" : "input");
    for (const value of field.enum ?? []) input.add(new Option(value, value));
    if (field.type === "boolean") input.type = "checkbox";
    if (field.type === "number" || field.type === "integer") input.type = "number";
    label.append(input);
    box.append(label);
    read.push([name, () => (field.type === "boolean" ? input.checked : input.type === "number" ? Number(input.value) : input.value)]);
  }
  answerButton(box, message, "Accept", () => ({ action: "accept", content: Object.fromEntries(read.map(([name, value]) => [name, value()])) }));
  answerButton(box, message, "Decline", () => ({ action: "decline" }));
}

$("new").onsubmit = async (event) => {
  event.preventDefault();
  const folder = $("folder").value.trim();
  try {
    const made = await call("session/new", { ...(folder && { cwd: folder }), mcpServers: [] });
    clear(made.sessionId, folder || undefined, "New session");
    await list();
    $("text").focus();
  } catch (error) { show(error.message); }
};

$("prompt").onsubmit = async (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  const session = state.session;
  if (!text || !session) return show(session ? "Write something first." : "Choose or make a session first.");
  $("text").value = "";
  state.running.add(session);
  state.last = null;
  mark();
  try {
    const { stopReason } = await call("session/prompt", { sessionId: session, prompt: [{ type: "text", text }] });
    if (stopReason !== "end_turn" && session === state.session) line("note", `stopped: ${stopReason}`);
  } catch (error) {
    if (session === state.session) line("note", `failed: ${error.message}`);
  }
  state.running.delete(session);
  state.last = null;
  mark();
  list().catch((error) => show(error.message));
};

$("text").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("prompt").requestSubmit(); }
};
$("cancel").onclick = () => send({ method: "session/cancel", params: { sessionId: state.session } });
$("leave").onclick = async () => { await fetch("/gander/login", { method: "DELETE" }); location.reload(); };

start();
