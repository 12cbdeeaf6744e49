/** Terminals that the agent asks for: a process each, its output kept for the agent and shown in VS Code's terminal panel. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { StringDecoder } from "node:string_decoder";
import type { CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse } from "@agentclientprotocol/sdk";

/** Where a terminal is shown. */
export interface TerminalScreen {
  write(text: string): void;
  exited(status: TerminalExitStatus): void;
  show(): void;
}

/** Makes the screen of a terminal; `kill` is what closing it does. */
export type OpenScreen = (title: string, kill: () => void) => TerminalScreen;

export const DEFAULT_OUTPUT_BYTES = 1024 * 1024;
export const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

interface Terminal {
  readonly child: ChildProcess;
  readonly output: OutputTail;
  readonly screen: TerminalScreen;
  readonly exited: Promise<TerminalExitStatus>;
  status: TerminalExitStatus | undefined;
}

export class Terminals {
  readonly #terminals = new Map<string, Terminal>();

  constructor(private readonly openScreen: OpenScreen, private readonly newId: () => string = randomUUID) {}

  create(request: CreateTerminalRequest, cwd: string): string {
    const args = request.args ?? [];
    const variables = Object.fromEntries((request.env ?? []).map(({ name, value }) => [name, value]));
    // A group of its own, so that the end of the terminal is also the end of what the command started.
    const child = spawn(request.command, args, {
      cwd, env: { ...process.env, ...variables }, stdio: ["ignore", "pipe", "pipe"], detached: process.platform !== "win32", windowsHide: true,
      // A command line is given as one word by some agents; then the shell reads it, as in any terminal.
      shell: args.length === 0,
    });
    const terminalId = this.newId();
    const limit = Math.min(request.outputByteLimit ?? DEFAULT_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
    const title = [request.command, ...args].join(" ");
    const screen = this.openScreen(title, () => kill(child));
    const terminal: Terminal = { child, output: new OutputTail(limit), screen, exited: exitOf(child), status: undefined };
    this.#terminals.set(terminalId, terminal);
    for (const stream of [child.stdout, child.stderr]) {
      const decoder = new StringDecoder("utf8");
      stream?.on("data", (chunk: Buffer) => {
        const text = decoder.write(chunk);
        terminal.output.push(text);
        screen.write(text);
      });
    }
    void terminal.exited.then((status) => {
      terminal.status = status;
      screen.exited(status);
    });
    return terminalId;
  }

  output(terminalId: string): TerminalOutputResponse {
    const { output, status } = this.#find(terminalId);
    const shown = { output: output.text, truncated: output.truncated };
    return status === undefined ? shown : { ...shown, exitStatus: status };
  }

  waitForExit(terminalId: string): Promise<TerminalExitStatus> {
    return this.#find(terminalId).exited;
  }

  kill(terminalId: string): void {
    kill(this.#find(terminalId).child);
  }

  /** Ends the command if it runs, and forgets the output. What the panel shows stays there. */
  release(terminalId: string): void {
    kill(this.#find(terminalId).child);
    this.#terminals.delete(terminalId);
  }

  show(terminalId: string): void {
    this.#terminals.get(terminalId)?.screen.show();
  }

  dispose(): void {
    for (const { child } of this.#terminals.values()) kill(child);
    this.#terminals.clear();
  }

  #find(terminalId: string): Terminal {
    const terminal = this.#terminals.get(terminalId);
    if (terminal === undefined) throw new Error(`no such terminal: ${terminalId}`);
    return terminal;
  }
}

/** The end of an output: what goes beyond the limit is dropped at the front, between characters. */
export class OutputTail {
  #pieces: string[] = [];
  #bytes = 0;
  #truncated = false;

  constructor(private readonly limit: number) {}

  get truncated(): boolean {
    return this.#truncated || this.#bytes > this.limit;
  }

  get text(): string {
    this.#trim();
    return this.#pieces.join("");
  }

  push(text: string): void {
    this.#pieces.push(text);
    this.#bytes += Buffer.byteLength(text);
    // Cut only when twice the limit has gathered, so that a long output is not copied with every piece.
    if (this.#bytes > this.limit * 2) this.#trim();
  }

  #trim(): void {
    if (this.#bytes <= this.limit) return;
    const all = Buffer.from(this.#pieces.join(""));
    let start = all.length - this.limit;
    // A byte of the form 10xxxxxx continues a character.
    while (start < all.length && ((all[start] ?? 0) & 0xc0) === 0x80) start += 1;
    this.#pieces = [all.subarray(start).toString("utf8")];
    this.#bytes = all.length - start;
    this.#truncated = true;
  }
}

function exitOf(child: ChildProcess): Promise<TerminalExitStatus> {
  return new Promise((resolve) => {
    // `close` comes after the last of the output, `exit` may come before it.
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
    child.once("error", () => resolve({ exitCode: 127, signal: null }));
  });
}

function kill(child: ChildProcess): void {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill();
    else process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}
