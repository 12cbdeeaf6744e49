/** What the agent may ask of the editor, tied to the parts that do it. */
import { RequestError } from "@agentclientprotocol/sdk";
import type { ClientHandlers } from "./acpClient";
import { confine } from "./confine";
import type { Questions } from "./questions";
import type { Terminals } from "./terminals";

export type FileHandlers = Pick<ClientHandlers, "readTextFile" | "writeTextFile">;

export function clientHandlers(questions: Questions, files: FileHandlers, terminals: Terminals, roots: () => readonly string[]): ClientHandlers {
  return {
    requestPermission: (request, signal) => questions.askPermission(request, signal),
    createElicitation: (request, signal) => questions.askElicitation(request, signal),
    readTextFile: (request) => refusing(files.readTextFile(request)),
    writeTextFile: (request) => refusing(files.writeTextFile(request)),
    createTerminal: async (request) => {
      const cwd = await refusing(confine(request.cwd ?? roots()[0] ?? "", roots()));
      return { terminalId: terminals.create(request, cwd) };
    },
    terminalOutput: ({ terminalId }) => refusing(asPromise(() => terminals.output(terminalId))),
    waitForTerminalExit: ({ terminalId }) => refusing(asPromise(() => terminals.waitForExit(terminalId))),
    killTerminal: ({ terminalId }) => refusing(asPromise(() => terminals.kill(terminalId))),
    releaseTerminal: ({ terminalId }) => refusing(asPromise(() => terminals.release(terminalId))),
  };
}

async function asPromise<T>(run: () => T | Promise<T>): Promise<T> {
  return run();
}

/** The agent reads why: an error without a code of its own would only be told as "internal error". */
async function refusing<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw RequestError.invalidParams({ details: text }, text);
  }
}
