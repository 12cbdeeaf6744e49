import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { GooseError } from "../src/shared/errors";
import { type LaunchOptions, Subprocess } from "../src/extension/subprocess";

class TestChild extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly signals: string[] = [];
  constructor(private readonly obeys: boolean) {
    super();
  }
  kill(signal: NodeJS.Signals): boolean {
    this.signals.push(signal);
    if (this.obeys || signal === "SIGKILL") setImmediate(() => this.end(null, signal));
    return true;
  }
  end(code: number | null, signal: NodeJS.Signals | null): void {
    this.exitCode = code;
    this.signalCode = signal;
    this.emit("exit", code, signal);
  }
}

function harness(obeys = true, killTimeoutMs = 5_000) {
  const children: TestChild[] = [];
  const states: (string | GooseError["_tag"])[] = [];
  const stderr: string[] = [];
  const spawn = () => {
    const child = new TestChild(obeys);
    children.push(child);
    setImmediate(() => child.emit("spawn"));
    return child as unknown as ChildProcessWithoutNullStreams;
  };
  const events = { status: (status: string, error?: GooseError) => void states.push(error?._tag ?? status), stderr: (text: string) => void stderr.push(text) };
  return { subprocess: new Subprocess(events, spawn, killTimeoutMs), children, states, stderr };
}
const options: LaunchOptions = { path: "/x/gander", args: ["acp"], cwd: "/", env: {} };

afterEach(() => vi.useRealTimers());

describe("Subprocess", () => {
  it("starts and stops", async () => {
    const { subprocess, states, children } = harness();
    expect(subprocess.status).toBe("stopped");
    await subprocess.start(options);
    expect(subprocess.status).toBe("running");
    await subprocess.stop();
    expect(states).toEqual(["starting", "running", "stopped"]);
    expect(children[0]?.signals).toEqual(["SIGTERM"]);
  });

  it("kills a process that does not listen, after five seconds and not before", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { subprocess, children } = harness(false);
    await subprocess.start(options);
    const stopped = subprocess.stop();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(children[0]?.signals).toEqual(["SIGTERM"]);
    await vi.advanceTimersByTimeAsync(2);
    await stopped;
    expect(children[0]?.signals).toEqual(["SIGTERM", "SIGKILL"]);
    expect(subprocess.status).toBe("stopped");
  });

  it("tells a crash from an end that was asked for", async () => {
    const { subprocess, states, children } = harness();
    await subprocess.start(options);
    children[0]?.end(139, null);
    expect(states).toEqual(["starting", "running", "SubprocessCrashError"]);
    expect(subprocess.error).toMatchObject({ code: 139 });
    expect(subprocess.status).toBe("error");
    await subprocess.start(options);
    expect(subprocess.status).toBe("running");
    expect(subprocess.error).toBeUndefined();
  });

  it("never has two processes, however quickly it is restarted", async () => {
    const { subprocess, children, states } = harness();
    await Promise.all([subprocess.start(options), subprocess.start(options), subprocess.stop(), subprocess.start(options)]);
    expect(children.map(({ signals }) => signals)).toEqual([["SIGTERM"], ["SIGTERM"], []]);
    expect(children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)).toHaveLength(1);
    expect(states.at(-1)).toBe("running");
  });

  it("does not take the end of an earlier process for a crash of the present one", async () => {
    const { subprocess, children, states } = harness();
    await subprocess.start(options);
    await subprocess.start(options);
    children[0]?.emit("exit", 1, null);
    expect(subprocess.status).toBe("running");
    expect(states).not.toContain("SubprocessCrashError");
  });

  it("stops while it starts", async () => {
    const { subprocess, children } = harness();
    const started = subprocess.start(options);
    const stopped = subprocess.stop();
    await Promise.all([started, stopped]);
    expect(children[0]?.signals).toEqual(["SIGTERM"]);
    expect(subprocess.status).toBe("stopped");
  });

  it("passes what the process writes to stderr on", async () => {
    const { subprocess, children, stderr } = harness();
    await subprocess.start(options);
    children[0]?.stderr.write("warning: x\n");
    await new Promise(setImmediate);
    expect(stderr).toEqual(["warning: x\n"]);
  });

  it("says why a real binary cannot be started, and can start another one afterwards", async () => {
    const states: string[] = [];
    const subprocess = new Subprocess({ status: (status) => void states.push(status), stderr: () => {} });
    await expect(subprocess.start({ ...options, path: "/no/such/binary" })).rejects.toMatchObject({ _tag: "SubprocessSpawnError", path: "/no/such/binary" });
    expect(subprocess.status).toBe("error");
    const real = { ...options, path: process.execPath, args: ["-e", "process.stdin.resume()"], env: process.env };
    const child = await subprocess.start(real);
    expect(child.pid).toBeGreaterThan(0);
    await subprocess.stop();
    expect(child.signalCode).toBe("SIGTERM");
    expect(states).toEqual(["starting", "error", "starting", "running", "stopped"]);
  });

  it("kills a real process that ignores SIGTERM", async () => {
    const subprocess = new Subprocess({ status: () => {}, stderr: () => {} }, undefined, 100);
    const script = "process.on('SIGTERM', () => {}); process.stdin.resume(); console.log('ready')";
    const child = await subprocess.start({ ...options, path: process.execPath, args: ["-e", script], env: process.env });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await subprocess.stop();
    expect(child.signalCode).toBe("SIGKILL");
  });
});
