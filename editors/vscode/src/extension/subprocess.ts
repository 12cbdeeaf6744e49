/** The agent's process: stopped, starting, running or error; ended with SIGTERM, and with SIGKILL if it does not listen. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { type GooseError, type SubprocessSpawnError, subprocessCrash, subprocessSpawn } from "../shared/errors";
import type { ProcessStatus } from "../shared/types";

export const KILL_TIMEOUT_MS = 5_000;

export interface LaunchOptions {
  readonly path: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

export type Spawn = (options: LaunchOptions) => ChildProcessWithoutNullStreams;

export interface SubprocessEvents {
  status(status: ProcessStatus, error?: GooseError): void;
  stderr(text: string): void;
}

/**
 * One process at a time. `start`, `stop` and `restart` run one after the other, in the order in which they were called: two quick
 * restarts give two processes in turn and never two at once. What an earlier process still says or how it ends is not about the
 * present one, and is not heard.
 */
export class Subprocess {
  #status: ProcessStatus = "stopped";
  #child: ChildProcessWithoutNullStreams | undefined;
  #error: GooseError | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly events: SubprocessEvents,
    private readonly spawnChild: Spawn = spawnAgent,
    private readonly killTimeoutMs = KILL_TIMEOUT_MS,
  ) {}

  get status(): ProcessStatus {
    return this.#status;
  }

  get error(): GooseError | undefined {
    return this.#error;
  }

  /** Ends the process that runs, if one does, and starts another. Rejects with a `SubprocessSpawnError`. */
  start(options: LaunchOptions): Promise<ChildProcessWithoutNullStreams> {
    return this.#inTurn(async () => {
      await this.#end();
      return this.#launch(options);
    });
  }

  stop(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#end();
      this.#set("stopped");
    });
  }

  #inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(operation);
    this.#turn = result.catch(() => {});
    return result;
  }

  #launch(options: LaunchOptions): Promise<ChildProcessWithoutNullStreams> {
    this.#set("starting");
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => {
        const error: SubprocessSpawnError = subprocessSpawn(options.path, reason);
        this.#child = undefined;
        this.#set("error", error);
        reject(error);
      };
      let child: ChildProcessWithoutNullStreams;
      try {
        child = this.spawnChild(options);
      } catch (error) {
        fail(error instanceof Error ? error.message : String(error));
        return;
      }
      this.#child = child;
      child.stderr.on("data", (chunk: Buffer) => this.events.stderr(chunk.toString("utf8")));
      child.once("spawn", () => {
        this.#set("running");
        resolve(child);
      });
      child.once("error", (error) => {
        if (this.#child === child && this.#status === "starting") fail(error.message);
      });
      child.once("exit", (code, signal) => this.#exited(child, code, signal));
    });
  }

  #exited(child: ChildProcessWithoutNullStreams, code: number | null, signal: NodeJS.Signals | null): void {
    // `#end` forgets the child before it sends a signal: whoever is still the child was not asked to end.
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#set("error", subprocessCrash(code, signal));
  }

  async #end(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => child.kill("SIGKILL"), this.killTimeoutMs);
      child.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      child.kill("SIGTERM");
    });
  }

  #set(status: ProcessStatus, error?: GooseError): void {
    if (status === this.#status && error === undefined) return;
    this.#status = status;
    this.#error = error;
    this.events.status(status, error);
  }
}

function spawnAgent({ path, args, cwd, env }: LaunchOptions): ChildProcessWithoutNullStreams {
  return spawn(path, [...args], { cwd, env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
}
