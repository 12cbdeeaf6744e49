/** Permission requests and elicitations that wait for a person. */
import { randomUUID } from "node:crypto";
import type {
  CreateElicitationRequest, CreateElicitationResponse, RequestPermissionRequest, RequestPermissionResponse,
} from "@agentclientprotocol/sdk";

export interface OpenPermission {
  readonly requestId: string;
  readonly request: RequestPermissionRequest;
}

export interface OpenElicitation {
  readonly requestId: string;
  readonly request: CreateElicitationRequest;
}

export interface QuestionEvents {
  permissionAsked(open: OpenPermission): void;
  /** `optionId` null: withdrawn, answered elsewhere, or dismissed. */
  permissionSettled(open: OpenPermission, optionId: string | null): void;
  elicitationAsked(open: OpenElicitation): void;
  elicitationSettled(open: OpenElicitation): void;
}

interface Waiting<Request, Response> {
  readonly requestId: string;
  readonly request: Request;
  readonly settle: (response: Response, optionId: string | null) => void;
}

/**
 * Each question is settled once: by the first answer, by its agent taking it back, or by the end of its turn. Only an option that
 * was offered counts as an answer.
 */
export class Questions {
  readonly #permissions = new Map<string, Waiting<RequestPermissionRequest, RequestPermissionResponse>>();
  readonly #elicitations = new Map<string, Waiting<CreateElicitationRequest, CreateElicitationResponse>>();

  constructor(private readonly events: QuestionEvents, private readonly newId: () => string = randomUUID) {}

  get permissions(): readonly OpenPermission[] {
    return [...this.#permissions.values()];
  }

  get elicitations(): readonly OpenElicitation[] {
    return [...this.#elicitations.values()];
  }

  askPermission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse> {
    const open = { requestId: this.newId(), request };
    return new Promise((resolve) => {
      const settle = (response: RequestPermissionResponse, optionId: string | null) => {
        if (!this.#permissions.delete(open.requestId)) return;
        resolve(response);
        this.events.permissionSettled(open, optionId);
      };
      this.#permissions.set(open.requestId, { ...open, settle });
      signal.addEventListener("abort", () => settle(CANCELLED, null), { once: true });
      if (signal.aborted) settle(CANCELLED, null);
      else this.events.permissionAsked(open);
    });
  }

  /** False when there is no such question any more, or no such option. */
  answerPermission(requestId: string, optionId: string | null, meta?: Record<string, unknown>): boolean {
    const waiting = this.#permissions.get(requestId);
    if (waiting === undefined) return false;
    if (optionId === null) {
      waiting.settle(CANCELLED, null);
      return true;
    }
    if (!waiting.request.options.some((option) => option.optionId === optionId)) return false;
    waiting.settle({ outcome: { outcome: "selected", optionId }, ...(meta !== undefined && { _meta: meta }) }, optionId);
    return true;
  }

  askElicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const open = { requestId: this.newId(), request };
    return new Promise((resolve) => {
      const settle = (response: CreateElicitationResponse) => {
        if (!this.#elicitations.delete(open.requestId)) return;
        resolve(response);
        this.events.elicitationSettled(open);
      };
      this.#elicitations.set(open.requestId, { ...open, settle });
      signal.addEventListener("abort", () => settle({ action: "cancel" }), { once: true });
      if (signal.aborted) settle({ action: "cancel" });
      else this.events.elicitationAsked(open);
    });
  }

  answerElicitation(requestId: string, response: CreateElicitationResponse): boolean {
    const waiting = this.#elicitations.get(requestId);
    waiting?.settle(response, null);
    return waiting !== undefined;
  }

  /** The protocol wants every open question of a cancelled turn to be answered with `cancelled`. */
  cancelSession(sessionId: string): void {
    for (const waiting of [...this.#permissions.values()]) {
      if (waiting.request.sessionId === sessionId) waiting.settle(CANCELLED, null);
    }
    for (const waiting of [...this.#elicitations.values()]) {
      if ("sessionId" in waiting.request && waiting.request.sessionId === sessionId) waiting.settle({ action: "cancel" }, null);
    }
  }

  /** The connection is gone. */
  cancelAll(): void {
    for (const waiting of [...this.#permissions.values()]) waiting.settle(CANCELLED, null);
    for (const waiting of [...this.#elicitations.values()]) waiting.settle({ action: "cancel" }, null);
  }
}

const CANCELLED: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };
