// A load balancer in front of nodes: each request, and each WebSocket, goes to the next one that is healthy.
//
// ACP over plain HTTP needs its connection to stay with one node while that lives: requests that carry an Acp-Connection-Id go
// where the first one went. Nothing else is kept together, and no request is sent twice.
//
// Usage: proxy.mjs NODE…, each as host:port. Prints its own address, and at its end (SIGTERM) how many requests each node got.
import { createServer, request } from "node:http";

const nodes = process.argv.slice(2).map((address) => ({ address, healthy: false, alive: false, served: 0 }));
/** Which node has an ACP connection. */
const places = new Map();
const CONNECTION = "acp-connection-id";
let turn = 0;

function next() {
  for (let tried = 0; tried < nodes.length; tried += 1) {
    turn = (turn + 1) % nodes.length;
    if (nodes[turn].healthy) return nodes[turn];
  }
  return null;
}

function nodeFor(headers) {
  const connection = headers[CONNECTION];
  const kept = places.get(connection);
  // A node that drains still has its half of the conversation.
  const node = kept?.alive ? kept : next();
  if (connection && node) places.set(connection, node);
  if (node) node.served += 1;
  return node;
}

function ask(node, incoming) {
  const [host, port] = node.address.split(":");
  const { method, url, headers } = incoming;
  return request({ host, port, method, path: url, headers, agent: false });
}

function refuse(response) {
  if (response.headersSent) response.destroy();
  else response.writeHead(502, { "retry-after": "1", "content-type": "text/plain" }).end("no node\n");
}

const server = createServer((incoming, response) => {
  const node = nodeFor(incoming.headers);
  if (!node) return refuse(response);
  const onward = ask(node, incoming);
  onward.on("response", (answer) => {
    const connection = answer.headers[CONNECTION];
    if (connection) places.set(connection, node);
    response.writeHead(answer.statusCode, answer.headers);
    // A stream that says nothing yet is open all the same.
    response.flushHeaders();
    answer.pipe(response);
    // Half an answer is no answer: the client must see that it was cut.
    answer.on("close", () => answer.complete || response.destroy());
  });
  onward.on("error", () => refuse(response));
  response.on("close", () => onward.destroy());
  incoming.pipe(onward);
});

server.on("upgrade", (incoming, socket, head) => {
  const node = nodeFor(incoming.headers);
  socket.on("error", () => {});
  if (!node) return socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  const onward = ask(node, incoming);
  onward.on("upgrade", (answer, upstream, first) => {
    const lines = answer.rawHeaders.reduce((text, word, at) => text + word + (at % 2 ? "\r\n" : ": "), "");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`);
    socket.write(first);
    upstream.write(head);
    upstream.on("error", () => {});
    upstream.pipe(socket).pipe(upstream);
    upstream.on("close", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
  });
  onward.on("response", (answer) => socket.end(`HTTP/1.1 ${answer.statusCode} Refused\r\nconnection: close\r\n\r\n`));
  onward.on("error", () => socket.destroy());
  onward.end();
});

/** As load balancers do: a node that says it is not well gets nothing new. */
async function watch(node) {
  const limit = { signal: AbortSignal.timeout(2000) };
  const answer = await fetch(`http://${node.address}/health`, limit).catch(() => null);
  [node.alive, node.healthy] = [answer !== null, answer?.ok ?? false];
  setTimeout(watch, 200, node);
}

process.on("SIGTERM", () => {
  console.log(JSON.stringify(nodes.map(({ served }) => served)));
  process.exit(0);
});
await Promise.all(nodes.map(watch));
server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
