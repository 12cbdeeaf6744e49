import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compareVersions, judgeVersion, missing, parseVersion, productOf, runVersion } from "../src/extension/version";

describe("version", () => {
  it.each([
    ["goose 1.16.0", "goose", "1.16.0"],
    ["v1.16.0", undefined, "1.16.0"],
    ["1.16.0", undefined, "1.16.0"],
    ["goose version 1.16.0", "goose", "1.16.0"],
    ["Goose 1.16.0-beta", "goose", "1.16.0-beta"],
    ["  1.52.0\n", undefined, "1.52.0"],
    ["gander 0.1.0", "gander", "0.1.0"],
    ["\ngoose 10.20.30 (abc 2026)\nmore", "goose", "10.20.30"],
  ])("reads %j", (output, product, text) => {
    expect(parseVersion(output)).toMatchObject({ product, text });
  });

  it.each(["", "goose", "1.16", "goose one.two.three", "error: 1.2.3 is no number of a version", "llama 1.2.3"])("does not read %j", (output) =>
    expect(parseVersion(output)).toBeUndefined());

  it.each([
    ["1.16.0", "1.16.0", 0], ["1.15.9", "1.16.0", -1], ["1.9.0", "1.16.0", -1], ["2.0.0", "1.16.0", 1], ["1.16.1", "1.16.0", 1], ["1.16.0-beta", "1.16.0", 0],
  ])("compares %s with %s by numbers", (left, right, sign) => {
    const [a, b] = [parseVersion(left), parseVersion(right)];
    expect(a && b && Math.sign(compareVersions(a, b))).toBe(sign);
  });

  it("lets a new enough binary through", () => {
    expect(judgeVersion("/x/goose", { output: " 1.52.0" })).toEqual({ product: "goose", status: { status: "compatible", detectedVersion: "1.52.0", minimumVersion: "1.16.0" } });
    expect(judgeVersion("/x/renamed", { output: "gander 0.1.0" })).toMatchObject({ product: "gander", status: { status: "compatible", minimumVersion: "0.1.0" } });
    expect(judgeVersion("/x/gander", { output: "goose 1.16.0" })).toMatchObject({ product: "goose", status: { status: "compatible" } });
  });

  it("blocks what is too old, or cannot be read", () => {
    expect(judgeVersion("/x/goose", { output: "goose 1.15.9" })).toMatchObject({
      status: { status: "blocked_outdated", detectedVersion: "1.15.9", minimumVersion: "1.16.0", updateUrl: expect.stringContaining("goose") as string },
      error: { _tag: "VersionMismatchError", detected: "1.15.9", minimum: "1.16.0" },
    });
    const unreadable = judgeVersion("/x/goose", { output: "hello" });
    expect(unreadable).toMatchObject({ status: { status: "blocked_outdated" }, error: { _tag: "VersionMismatchError" } });
    expect(unreadable.status).not.toHaveProperty("detectedVersion");
  });

  it("counts what cannot be run as missing", () => {
    expect(judgeVersion("/x/goose", { failure: "EACCES" })).toMatchObject({ status: { status: "blocked_missing" }, error: { _tag: "SubprocessSpawnError" } });
    expect(missing("goose")).toMatchObject({ status: "blocked_missing", minimumVersion: "1.16.0", installUrl: expect.any(String) as string });
  });

  it.each([["/usr/bin/goose", "goose"], ["C:\\Goose\\goose.exe", "goose"], ["/usr/bin/gander", "gander"], ["/goose/bin/agent", "gander"]])("guesses the product of %s", (path, product) =>
    expect(productOf(path)).toBe(product));

  it.skipIf(process.platform === "win32")("runs the binary, and waits no longer than it may", async () => {
    const folder = mkdtempSync(join(tmpdir(), "version-"));
    const script = (name: string, body: string) => {
      const path = join(folder, name);
      writeFileSync(path, `#!/bin/sh\n${body}\n`);
      chmodSync(path, 0o755);
      return path;
    };
    expect(await runVersion(script("good", 'echo "goose version 1.20.0"'))).toEqual({ output: "goose version 1.20.0\n" });
    expect(await runVersion(script("stderr", 'echo "goose 1.20.0" >&2'))).toEqual({ output: "goose 1.20.0\n" });
    expect(await runVersion(script("bad", "exit 3"))).toHaveProperty("failure");
    expect(await runVersion(join(folder, "absent"))).toHaveProperty("failure");
    expect(await runVersion(script("slow", "exec sleep 60"), 50)).toEqual({ failure: "no answer to --version within 0.05 s" });
  });
});
