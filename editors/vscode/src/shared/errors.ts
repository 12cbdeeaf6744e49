/** The errors of the extension: one tagged union, so that a reader can tell them apart without classes. */

export interface BinaryNotFoundError {
  readonly _tag: "BinaryNotFoundError";
  readonly message: string;
  /** Every path that was tried, in the order of the search. */
  readonly searched: readonly string[];
}

export interface SubprocessSpawnError {
  readonly _tag: "SubprocessSpawnError";
  readonly message: string;
  readonly path: string;
}

export interface SubprocessCrashError {
  readonly _tag: "SubprocessCrashError";
  readonly message: string;
  readonly code: number | null;
  readonly signal: string | null;
}

export interface JsonRpcParseError {
  readonly _tag: "JsonRpcParseError";
  readonly message: string;
  /** The beginning of the line that is no JSON. */
  readonly line: string;
}

export interface JsonRpcTimeoutError {
  readonly _tag: "JsonRpcTimeoutError";
  readonly message: string;
  readonly method: string;
  readonly timeoutMs: number;
}

export interface JsonRpcError {
  readonly _tag: "JsonRpcError";
  readonly message: string;
  readonly code: number;
  readonly data?: unknown;
}

export interface VersionMismatchError {
  readonly _tag: "VersionMismatchError";
  readonly message: string;
  readonly detected: string | undefined;
  readonly minimum: string;
}

export type GooseError =
  | BinaryNotFoundError
  | SubprocessSpawnError
  | SubprocessCrashError
  | JsonRpcParseError
  | JsonRpcTimeoutError
  | JsonRpcError
  | VersionMismatchError;

/** The code of every request that was pending when its client was disposed. */
export const CLIENT_DISPOSED = -32000;

const MAX_LINE_IN_ERROR = 200;

export function binaryNotFound(searched: readonly string[]): BinaryNotFoundError {
  return { _tag: "BinaryNotFoundError", message: `no gander and no goose was found, places searched: ${searched.length}`, searched };
}

export function subprocessSpawn(path: string, reason: string): SubprocessSpawnError {
  return { _tag: "SubprocessSpawnError", message: `cannot start ${path}: ${reason}`, path };
}

export function subprocessCrash(code: number | null, signal: string | null): SubprocessCrashError {
  const how = signal === null ? `code ${code ?? "unknown"}` : `signal ${signal}`;
  return { _tag: "SubprocessCrashError", message: `the agent ended unexpectedly: ${how}`, code, signal };
}

export function jsonRpcParse(line: string): JsonRpcParseError {
  const shown = line.slice(0, MAX_LINE_IN_ERROR);
  return { _tag: "JsonRpcParseError", message: `the agent wrote a line that is no JSON-RPC message: ${shown}`, line: shown };
}

export function jsonRpcTimeout(method: string, timeoutMs: number): JsonRpcTimeoutError {
  return { _tag: "JsonRpcTimeoutError", message: `no answer to ${method} within ${timeoutMs / 1000} s`, method, timeoutMs };
}

export function jsonRpcError(code: number, message: string, data?: unknown): JsonRpcError {
  return data === undefined ? { _tag: "JsonRpcError", message, code } : { _tag: "JsonRpcError", message, code, data };
}

export function clientDisposed(): JsonRpcError {
  return jsonRpcError(CLIENT_DISPOSED, "Client disposed");
}

export function versionMismatch(product: string, detected: string | undefined, minimum: string): VersionMismatchError {
  const found = detected === undefined ? "its version cannot be read" : `found ${detected}`;
  return { _tag: "VersionMismatchError", message: `${product} ${minimum} or later is needed, ${found}`, detected, minimum };
}

const TAGS: ReadonlySet<string> = new Set<GooseError["_tag"]>([
  "BinaryNotFoundError",
  "SubprocessSpawnError",
  "SubprocessCrashError",
  "JsonRpcParseError",
  "JsonRpcTimeoutError",
  "JsonRpcError",
  "VersionMismatchError",
]);

export function isGooseError(value: unknown): value is GooseError {
  return typeof value === "object" && value !== null && "_tag" in value && typeof value._tag === "string" && TAGS.has(value._tag);
}

/** What a person reads of anything that was thrown. A JSON-RPC error often has its reason in `data` alone (goose 1.52). */
export function describeError(error: unknown): string {
  if (isGooseError(error)) {
    if (error._tag === "JsonRpcError" && typeof error.data === "string") return `${error.message}: ${error.data}`;
    return error.message;
  }
  return error instanceof Error ? error.message : String(error);
}
