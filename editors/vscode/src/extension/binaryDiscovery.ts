/** Finds the agent's binary: the setting, then PATH, then the places where installers put it. */
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { type BinaryNotFoundError, binaryNotFound } from "../shared/errors";

export const PRODUCTS = ["gander", "goose"] as const;
export type Product = (typeof PRODUCTS)[number];

export interface DiscoveryEnvironment {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly isExecutable: (path: string) => boolean;
}

export interface DiscoveryRequest {
  /** The setting `gander.binaryPath`; empty when it is not set. */
  readonly configuredPath: string;
  /** Which agents are looked for, the preferred one first. */
  readonly products: readonly Product[];
}

export interface FoundBinary {
  readonly path: string;
  readonly source: "setting" | "PATH" | "platform";
}

export type Discovery = { readonly found: FoundBinary } | { readonly error: BinaryNotFoundError };

/**
 * A configured path counts alone: somebody who names a binary does not want another one to be started because of a typing error.
 */
export function discoverBinary(request: DiscoveryRequest, environment: DiscoveryEnvironment): Discovery {
  const configured = request.configuredPath.trim();
  if (configured !== "") {
    const path = expandPath(configured, environment);
    return environment.isExecutable(path) ? { found: { path, source: "setting" } } : { error: binaryNotFound([path]) };
  }
  const searched: string[] = [];
  for (const candidate of candidates(request.products, environment)) {
    if (environment.isExecutable(candidate.path)) return { found: candidate };
    searched.push(candidate.path);
  }
  return { error: binaryNotFound(searched) };
}

function* candidates(products: readonly Product[], environment: DiscoveryEnvironment): Generator<FoundBinary> {
  for (const product of products) {
    for (const path of pathCandidates(product, environment)) yield { path, source: "PATH" };
    for (const path of platformPaths(product, environment.platform)) {
      yield { path: expandPath(path, environment), source: "platform" };
    }
  }
}

function pathCandidates(product: Product, { platform, env }: DiscoveryEnvironment): string[] {
  const windows = platform === "win32";
  const { join, delimiter } = windows ? win32 : posix;
  // Windows spells the variable `Path`, and environments there are not case-sensitive.
  const value = env["PATH"] ?? (windows ? env["Path"] : undefined) ?? "";
  const file = windows ? `${product}.exe` : product;
  // A relative entry of PATH would mean whatever folder the extension host happens to run in.
  const isAbsolute = windows ? win32.isAbsolute : posix.isAbsolute;
  return value.split(delimiter).filter((folder) => folder !== "" && isAbsolute(folder)).map((folder) => join(folder, file));
}

/** Where installers put the binaries. */
export function platformPaths(product: Product, platform: NodeJS.Platform): readonly string[] {
  const goose = product === "goose";
  if (platform === "darwin") {
    const shared = [`~/.local/bin/${product}`, `/usr/local/bin/${product}`, `/opt/homebrew/bin/${product}`];
    return goose ? ["/Applications/Goose.app/Contents/MacOS/goose", ...shared] : ["~/.cargo/bin/gander", ...shared];
  }
  if (platform === "win32") {
    const folder = goose ? "Goose" : "Gander";
    const paths = [`%LOCALAPPDATA%\\${folder}\\${product}.exe`, `%PROGRAMFILES%\\${folder}\\${product}.exe`];
    return goose ? paths : ["%USERPROFILE%\\.cargo\\bin\\gander.exe", ...paths];
  }
  const shared = [`~/.local/bin/${product}`, `/usr/local/bin/${product}`, `/usr/bin/${product}`, `/usr/share/${product}/bin/${product}`];
  return goose ? shared : ["~/.cargo/bin/gander", ...shared];
}

/** Expands a leading `~` and, on Windows, every `%VAR%`. A variable that is not set stays as it is written. */
export function expandPath(path: string, { platform, env, home }: DiscoveryEnvironment): string {
  const { join } = platform === "win32" ? win32 : posix;
  let expanded = path;
  if (expanded === "~") expanded = home;
  else if (expanded.startsWith("~/") || (platform === "win32" && expanded.startsWith("~\\"))) expanded = join(home, expanded.slice(2));
  if (platform !== "win32") return expanded;
  return expanded.replace(/%([^%]+)%/g, (written, name: string) => variable(env, name) ?? written);
}

function variable(env: DiscoveryEnvironment["env"], name: string): string | undefined {
  if (env[name] !== undefined) return env[name];
  const found = Object.keys(env).find((key) => key.toLowerCase() === name.toLowerCase());
  return found === undefined ? undefined : env[found];
}

/** This machine. */
export function realEnvironment(): DiscoveryEnvironment {
  return { platform: process.platform, env: process.env, home: homedir(), isExecutable };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    // A folder has the execute permission, too.
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
