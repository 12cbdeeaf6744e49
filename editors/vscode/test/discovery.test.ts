import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type DiscoveryEnvironment, PRODUCTS, discoverBinary, expandPath, platformPaths, realEnvironment } from "../src/extension/binaryDiscovery";
import { windowsHint, wslPath } from "../src/extension/windowsHint";

function environment(platform: NodeJS.Platform, executables: string[], env: Record<string, string> = {}): DiscoveryEnvironment {
  const home = platform === "win32" ? "C:\\Users\\me" : "/home/me";
  return { platform, env, home, isExecutable: (path) => executables.includes(path) };
}
const both = { configuredPath: "", products: PRODUCTS };

describe("binary discovery", () => {
  it("takes the setting before everything else", () => {
    const found = discoverBinary({ ...both, configuredPath: " ~/bin/goose " }, environment("linux", ["/home/me/bin/goose", "/bin/gander"], { PATH: "/bin" }));
    expect(found).toEqual({ found: { path: "/home/me/bin/goose", source: "setting" } });
  });

  it("does not start another binary when the configured one is wrong", () => {
    const found = discoverBinary({ ...both, configuredPath: "/opt/goose" }, environment("linux", ["/bin/gander"], { PATH: "/bin" }));
    expect(found).toMatchObject({ error: { _tag: "BinaryNotFoundError", searched: ["/opt/goose"] } });
  });

  it("searches PATH in its order, then the platform's places", () => {
    const env = { PATH: "/a:/b::relative" };
    expect(discoverBinary(both, environment("linux", ["/b/gander", "/a/gander"], env))).toMatchObject({ found: { path: "/a/gander", source: "PATH" } });
    expect(discoverBinary(both, environment("linux", ["/usr/local/bin/gander", "/a/goose"], env))).toMatchObject({ found: { path: "/usr/local/bin/gander", source: "platform" } });
    expect(discoverBinary(both, environment("linux", ["/a/goose"], env))).toMatchObject({ found: { path: "/a/goose", source: "PATH" } });
    expect(discoverBinary(both, environment("linux", ["relative/gander"], env))).toHaveProperty("error");
  });

  it("looks for one product if only that is wanted", () => {
    const found = discoverBinary({ configuredPath: "", products: ["goose"] }, environment("linux", ["/a/gander"], { PATH: "/a" }));
    expect(found).toHaveProperty("error._tag", "BinaryNotFoundError");
  });

  it.each([
    ["darwin", ["/Applications/Goose.app/Contents/MacOS/goose", "~/.local/bin/goose", "/usr/local/bin/goose", "/opt/homebrew/bin/goose"]],
    ["linux", ["~/.local/bin/goose", "/usr/local/bin/goose", "/usr/bin/goose", "/usr/share/goose/bin/goose"]],
    ["win32", ["%LOCALAPPDATA%\\Goose\\goose.exe", "%PROGRAMFILES%\\Goose\\goose.exe"]],
  ] as const)("knows goose's places on %s", (platform, places) => expect(platformPaths("goose", platform)).toEqual(places));

  it("finds each of the platform's places", () => {
    for (const platform of ["darwin", "linux", "win32"] as const) {
      const env = { LOCALAPPDATA: "C:\\Local", PROGRAMFILES: "C:\\Programs", USERPROFILE: "C:\\Users\\me" };
      for (const product of PRODUCTS) {
        for (const place of platformPaths(product, platform)) {
          const path = expandPath(place, environment(platform, [], env));
          expect(path).not.toMatch(/[~%]/);
          expect(discoverBinary(both, environment(platform, [path], env))).toEqual({ found: { path, source: "platform" } });
        }
      }
    }
  });

  it("finds goose.exe in Windows' PATH", () => {
    expect(discoverBinary(both, environment("win32", ["D:\\tools\\goose.exe"], { Path: "C:\\x;D:\\tools" }))).toMatchObject({ found: { path: "D:\\tools\\goose.exe" } });
  });

  it("expands ~ and %VAR%", () => {
    const windows = environment("win32", [], { LocalAppData: "C:\\Local" });
    expect(expandPath("~", environment("linux", []))).toBe("/home/me");
    expect(expandPath("~other/x", environment("linux", []))).toBe("~other/x");
    expect(expandPath("%LOCALAPPDATA%\\a", windows)).toBe("C:\\Local\\a");
    expect(expandPath("%NOT_SET%\\a", windows)).toBe("%NOT_SET%\\a");
    expect(expandPath("~\\a", windows)).toBe("C:\\Users\\me\\a");
    expect(expandPath("%HOME%/a", environment("linux", [], { HOME: "/x" }))).toBe("%HOME%/a");
  });

  it.skipIf(process.platform === "win32")("asks the real file system for the execute permission", () => {
    const folder = mkdtempSync(join(tmpdir(), "discovery-"));
    const binary = join(folder, "gander");
    writeFileSync(binary, "#!/bin/sh\n");
    const search = () => discoverBinary(both, { ...realEnvironment(), env: { PATH: folder }, home: folder });
    expect(search()).toHaveProperty("error");
    chmodSync(binary, 0o755);
    expect(search()).toEqual({ found: { path: binary, source: "PATH" } });
    mkdirSync(join(folder, "goose"));
    expect(discoverBinary({ configuredPath: join(folder, "goose"), products: PRODUCTS }, realEnvironment())).toHaveProperty("error");
  });
});

describe("hint for Windows", () => {
  it("names WSL and the command, on Windows alone", () => {
    expect(windowsHint("linux", "/home/me")).toEqual({});
    expect(windowsHint("win32", "C:\\code\\a b")).toMatchObject({ hint: { command: expect.stringContaining('wsl+Ubuntu "/mnt/c/code/a b"') as string } });
    expect(wslPath("relative\\x")).toBe("relative/x");
  });
});
