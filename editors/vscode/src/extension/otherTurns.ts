/** Turns that another client began in a session that is open here: when one begins, and how it ends. */
import { randomUUID } from "node:crypto";
import type { SessionNotification } from "@agentclientprotocol/sdk";
import { isRecord } from "../shared/guards";
import type { ReadyAgent } from "./agentConnection";

/** The agent answers it as the prompt of the turn under way is answered, after all its updates; at once if there is none. */
export const WAIT_METHOD = "_gander/session/wait";
const WATCH_METHOD = "_gander/sessions/watch";
/** As many as the agent lists at once: whether a session that was opened here is busy is looked up among these. */
const MAX_WATCHED = 500;
const METHOD_NOT_FOUND = -32601;

/** A turn that is under way, and the answer that is written in it. */
export interface Turn {
  readonly responseId: string;
  readonly sessionId: string;
}

export interface OtherTurnEvents {
  began(turn: Turn): void;
  /** `stopReason` null: it is not known how. */
  ended(turn: Turn, stopReason: string | null): void;
  failed(turn: Turn, error: unknown): void;
}

/**
 * The protocol tells the end of a turn to the client that began it and to nobody else, so the agent is asked. One that does not know
 * the method is asked once: its sessions have no other clients.
 */
export class OtherTurns {
  readonly #turns = new Map<string, Turn>();
  readonly #unaware = new WeakSet<ReadyAgent>();

  constructor(private readonly events: OtherTurnEvents) {}

  get size(): number {
    return this.#turns.size;
  }

  find(sessionId: string): Turn | undefined {
    return this.#turns.get(sessionId);
  }

  /** A session was opened: a turn may be under way that says nothing for a while. */
  async handleOpened(agent: ReadyAgent, sessionId: string): Promise<void> {
    if (this.#unaware.has(agent)) return;
    try {
      const watched = await agent.client.requestExtension(WATCH_METHOD, { limit: MAX_WATCHED });
      if (isBusy(watched, sessionId)) this.#follow(agent, sessionId);
    } catch (error) {
      this.#note(agent, error);
    }
  }

  /** Something was said in a session in which no prompt of ours is under way. */
  handleUpdate(agent: ReadyAgent, { sessionId, update }: SessionNotification): void {
    if (TURN_UPDATES.has(update.sessionUpdate) && !this.#unaware.has(agent)) this.#follow(agent, sessionId);
  }

  #follow(agent: ReadyAgent, sessionId: string): void {
    if (this.#turns.has(sessionId)) return;
    const turn = { responseId: randomUUID(), sessionId };
    this.#turns.set(sessionId, turn);
    this.events.began(turn);
    agent.client.requestExtension(WAIT_METHOD, { sessionId }).then(
      (result) => {
        this.#turns.delete(sessionId);
        this.events.ended(turn, isRecord(result) && typeof result["stopReason"] === "string" ? result["stopReason"] : null);
      },
      (error: unknown) => {
        this.#turns.delete(sessionId);
        if (this.#note(agent, error)) this.events.ended(turn, null);
        else this.events.failed(turn, error);
      },
    );
  }

  /** Whether the error says that the agent has no such method. */
  #note(agent: ReadyAgent, error: unknown): boolean {
    if (!isRecord(error) || error["code"] !== METHOD_NOT_FOUND) return false;
    this.#unaware.add(agent);
    return true;
  }
}

/** What only a turn says; titles, commands and modes may change between two turns. */
const TURN_UPDATES: ReadonlySet<string> = new Set([
  "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
]);

function isBusy(watched: unknown, sessionId: string): boolean {
  if (!isRecord(watched) || !Array.isArray(watched["sessions"])) return false;
  return watched["sessions"].some((session) => isRecord(session) && session["sessionId"] === sessionId && session["state"] !== "idle");
}
