/** Decides whether a binary is new enough, from what it prints for `--version`. */
import { execFile } from "node:child_process";
import { basename } from "node:path";
import type { VersionStatus } from "../shared/types";
import { type GooseError, subprocessSpawn, versionMismatch } from "../shared/errors";
import type { Product } from "./binaryDiscovery";

export const VERSION_TIMEOUT_MS = 5_000;

export const MINIMUM_VERSIONS: Readonly<Record<Product, string>> = { goose: "1.16.0", gander: "0.1.0" };

/** Where a newer one is to be had. gander's installation is a step of the walkthrough. */
export const INSTALL_URLS: Readonly<Partial<Record<Product, string>>> = { goose: "https://github.com/aaif-goose/goose/releases" };

export interface ParsedVersion {
  /** Named in the output, if it is. */
  readonly product: Product | undefined;
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** As it was written, with a suffix such as `-beta`. */
  readonly text: string;
}

/**
 * Reads `goose 1.16.0`, `v1.16.0`, `1.16.0`, `goose version 1.16.0` and `Goose 1.16.0-beta`, with blanks around them.
 */
export function parseVersion(output: string): ParsedVersion | undefined {
  const line = output.split(/\r?\n/).map((each) => each.trim()).find((each) => each !== "");
  const match = /^(?:(goose|gander)\s+)?(?:version\s+)?v?(\d+)\.(\d+)\.(\d+)((?:[-+][0-9A-Za-z.+-]+)?)(?:\s.*)?$/i.exec(line ?? "");
  if (match === null) return undefined;
  const [, product, major, minor, patch, suffix] = match;
  return {
    product: product === undefined ? undefined : (product.toLowerCase() as Product),
    major: Number(major),
    minor: Number(minor),
    patch: Number(patch),
    text: `${major}.${minor}.${patch}${suffix ?? ""}`,
  };
}

/** Negative, zero or positive, by major, minor and patch; a suffix does not count. */
export function compareVersions(left: ParsedVersion, right: ParsedVersion): number {
  return left.major - right.major || left.minor - right.minor || left.patch - right.patch;
}

/** What running the binary gave. */
export type VersionRun = { readonly output: string } | { readonly failure: string };

export interface VersionCheck {
  readonly product: Product;
  readonly status: VersionStatus;
  readonly error?: GooseError;
}

/** Judges a binary. One that cannot be run counts as missing, one whose version cannot be read as too old. */
export function judgeVersion(path: string, run: VersionRun): VersionCheck {
  if ("failure" in run) {
    const product = productOf(path);
    return { product, status: missing(product), error: subprocessSpawn(path, run.failure) };
  }
  const parsed = parseVersion(run.output);
  const product = parsed?.product ?? productOf(path);
  const minimumVersion = MINIMUM_VERSIONS[product];
  const minimum = parseVersion(minimumVersion);
  if (parsed !== undefined && minimum !== undefined && compareVersions(parsed, minimum) >= 0) {
    return { product, status: { status: "compatible", detectedVersion: parsed.text, minimumVersion } };
  }
  const detected = parsed === undefined ? {} : { detectedVersion: parsed.text };
  const url = INSTALL_URLS[product];
  const status: VersionStatus = { status: "blocked_outdated", ...detected, minimumVersion, ...(url !== undefined && { updateUrl: url }) };
  return { product, status, error: versionMismatch(product, parsed?.text, minimumVersion) };
}

export function missing(product: Product): VersionStatus {
  const url = INSTALL_URLS[product];
  return { status: "blocked_missing", minimumVersion: MINIMUM_VERSIONS[product], ...(url !== undefined && { installUrl: url }) };
}

/** Which agent a path names, for outputs that do not say. */
export function productOf(path: string): Product {
  return /goose/i.test(basename(path.replaceAll("\\", "/"))) ? "goose" : "gander";
}

export function runVersion(path: string, timeoutMs = VERSION_TIMEOUT_MS): Promise<VersionRun> {
  return new Promise((resolve) => {
    execFile(path, ["--version"], { timeout: timeoutMs, killSignal: "SIGKILL", windowsHide: true }, (error, stdout, stderr) => {
      if (error === null) resolve({ output: stdout.trim() === "" ? stderr : stdout });
      else if (error.killed === true) resolve({ failure: `no answer to --version within ${timeoutMs / 1000} s` });
      else resolve({ failure: error.message });
    });
  });
}
