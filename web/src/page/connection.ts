// The page's connection: ACP over one WebSocket, made again whenever it is lost.

import { pageKeyHeaders, pageKeySubprotocols } from './login';
import { type Handlers, type Message, RpcPeer } from '../chat';

export type ConnectionState = 'connecting' | 'online' | 'offline' | 'locked';

export interface Events extends Handlers {
  state(state: ConnectionState): void;
  /** A new connection is ready: whatever was open has to be read again. */
  ready(peer: RpcPeer, agent: AgentInfo): Promise<void>;
}
export interface AgentInfo {
  agentInfo?: { name: string; title?: string; version: string };
  agentCapabilities?: { promptCapabilities?: { image?: boolean } };
}

/** What this page calls itself. */
export const CLIENT_TITLE = 'gander web page';
const FIRST_WAIT = 250;
const MAX_WAIT = 8_000;

export class ServerConnection {
  #socket: WebSocket | null = null;
  #wait = FIRST_WAIT;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(private readonly address: URL, private readonly events: Events) {
    addEventListener('online', () => this.retryNow());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.retryNow();
    });
  }

  open(): void {
    // Later attempts leave the page as lost as it is: it is back when everything was read again.
    if (!this.#socket) this.events.state('connecting');
    const socket = new WebSocket(this.address, pageKeySubprotocols());
    const peer = new RpcPeer((message) => socket.send(JSON.stringify(message)), this.events);
    this.#socket = socket;
    socket.onopen = () => void this.#greet(peer).catch(() => socket.close());
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') peer.receive(JSON.parse(data) as Message);
    };
    socket.onclose = () => {
      peer.close();
      if (!this.#stopped) void this.#lost();
    };
  }

  /** Somebody looks again, or the network is back: no reason to wait any longer. */
  retryNow(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.open();
  }

  close(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  async #greet(peer: RpcPeer): Promise<void> {
    const agent = await peer.request<AgentInfo>('initialize', {
      protocolVersion: 1,
      clientInfo: { name: 'gander-web', title: CLIENT_TITLE, version: '1' },
      clientCapabilities: {
        elicitation: { form: {}, url: {} },
        session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
      },
    });
    await this.events.ready(peer, agent);
    this.#wait = FIRST_WAIT;
    this.events.state('online');
  }

  async #lost(): Promise<void> {
    // A WebSocket does not say why it was refused: an ordinary request does.
    const status = await fetch(new URL('gander/status', location.href), { cache: 'no-store', headers: pageKeyHeaders() }).then((answer) => answer.status, () => 0);
    this.events.state(status === 401 ? 'locked' : 'offline');
    this.#timer = setTimeout(() => this.retryNow(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, MAX_WAIT);
  }
}

export function acpAddress(): URL {
  const address = new URL('acp', location.href);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  address.search = '';
  address.hash = '';
  return address;
}
