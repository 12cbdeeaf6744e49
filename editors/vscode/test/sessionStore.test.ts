import { describe, expect, it } from "vitest";
import { ACTIVE_SESSION_KEY, MAX_STORED_SESSIONS, SESSIONS_KEY, SessionStore } from "../src/extension/sessionStore";
import { DEFAULT_TITLE, sessionTitle } from "../src/extension/titles";

function memento(initial: Record<string, unknown> = {}) {
  const values = new Map(Object.entries(initial));
  return { values, get: (key: string) => values.get(key), update: async (key: string, value: unknown) => void values.set(key, value) };
}
const entry = (sessionId: string, title = "T") => ({ sessionId, title, cwd: "/w", createdAt: "2026-01-01T00:00:00.000Z" });

describe("SessionStore", () => {
  it("stores metadata only, under the keys of the contract", async () => {
    const store = memento();
    await new SessionStore(store).activate(entry("a"));
    expect(SESSIONS_KEY).toBe("goose.sessions.v1");
    expect(ACTIVE_SESSION_KEY).toBe("goose.activeSession");
    expect(Object.fromEntries(store.values)).toEqual({
      "goose.sessions.v1": { schemaVersion: 1, activeSessionId: "a", sessions: [entry("a")] },
      "goose.activeSession": "a",
    });
  });

  it("finds everything again after a restart", async () => {
    const memory = memento();
    const store = new SessionStore(memory);
    await store.activate(entry("a"));
    await store.activate(entry("b"));
    await store.activate(entry("a", "Renamed"));
    const again = new SessionStore(memory);
    expect(again.sessions).toEqual([entry("b"), entry("a", "Renamed")]);
    expect(again.activeSessionId).toBe("a");
    await again.setTitle("b", "New");
    await again.forget("a");
    expect(new SessionStore(memory).sessions).toEqual([entry("b", "New")]);
    expect(new SessionStore(memory).activeSessionId).toBeNull();
  });

  it("keeps what can be read of damaged data", () => {
    const sessions = [entry("good"), { sessionId: 3 }, null, { ...entry("x"), cwd: undefined }];
    expect(new SessionStore(memento({ [SESSIONS_KEY]: { schemaVersion: 1, activeSessionId: "good", sessions } })).sessions).toEqual([entry("good")]);
    for (const stored of ["text", 4, null, [], { schemaVersion: 2, sessions: [entry("a")] }]) {
      expect(new SessionStore(memento({ [SESSIONS_KEY]: stored })).sessions).toEqual([]);
    }
    expect(new SessionStore(memento({ [SESSIONS_KEY]: { schemaVersion: 1, activeSessionId: "good", sessions } })).activeSessionId).toBe("good");
    expect(new SessionStore(memento({ [ACTIVE_SESSION_KEY]: 3 })).activeSessionId).toBeNull();
  });

  it("does not grow without end", async () => {
    const store = new SessionStore(memento());
    for (let index = 0; index < MAX_STORED_SESSIONS + 5; index += 1) await store.activate(entry(`s${index}`));
    expect(store.sessions).toHaveLength(MAX_STORED_SESSIONS);
    expect(store.sessions[0]).toEqual(entry(`s${MAX_STORED_SESSIONS + 4}`));
  });
});

describe("titles", () => {
  it.each([
    ["", DEFAULT_TITLE], ["   \n", DEFAULT_TITLE], ["Fix the login", "Fix the login"], ["a\n b\tc", "a b c"], ["x".repeat(50), "x".repeat(50)],
    ["x".repeat(51), `${"x".repeat(47)}...`],
    ["Please explain how the session machine decides between queue and steer", "Please explain how the session machine decides..."],
    [`${"a".repeat(47)} bcd efg`, `${"a".repeat(47)}...`],
  ])("makes of %j", (message, title) => expect(sessionTitle(message)).toBe(title));

  it("never has more than fifty characters and never half of one", () => {
    for (let length = 0; length < 120; length += 1) {
      for (const text of ["🪿".repeat(length), "ab ".repeat(length), `${"w".repeat(length)} end`]) {
        const title = sessionTitle(text);
        expect([...title].length).toBeLessThanOrEqual(50);
        expect(title).not.toMatch(/[\ud800-\udbff]$|[\ud800-\udbff]\.\.\.$/);
      }
    }
    expect(DEFAULT_TITLE).toBe("New Session");
  });
});
