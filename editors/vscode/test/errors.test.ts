import { describe, expect, it } from "vitest";
import {
  CLIENT_DISPOSED, binaryNotFound, clientDisposed, describeError, isGooseError, jsonRpcError, jsonRpcParse, jsonRpcTimeout, subprocessCrash,
  subprocessSpawn, versionMismatch,
} from "../src/shared/errors";

describe("errors", () => {
  it("has seven tags, each with what a reader needs", () => {
    const errors = [
      binaryNotFound(["/a", "/b"]), subprocessSpawn("/x", "EACCES"), subprocessCrash(3, null), jsonRpcParse("not json"),
      jsonRpcTimeout("session/new", 30_000), jsonRpcError(-32602, "bad params", { field: "cwd" }), versionMismatch("goose", "1.15.0", "1.16.0"),
    ];
    expect(errors.map(({ _tag }) => _tag)).toEqual([
      "BinaryNotFoundError", "SubprocessSpawnError", "SubprocessCrashError", "JsonRpcParseError", "JsonRpcTimeoutError", "JsonRpcError",
      "VersionMismatchError",
    ]);
    for (const error of errors) {
      expect(isGooseError(error)).toBe(true);
      expect(describeError(error)).not.toBe("");
    }
    expect(errors[0]).toMatchObject({ searched: ["/a", "/b"] });
    expect(errors[5]).toEqual({ _tag: "JsonRpcError", message: "bad params", code: -32602, data: { field: "cwd" } });
  });

  it("says a crash by signal or by code", () => {
    expect(subprocessCrash(null, "SIGSEGV").message).toBe("the agent ended unexpectedly: signal SIGSEGV");
    expect(subprocessCrash(2, null).message).toBe("the agent ended unexpectedly: code 2");
  });

  it("keeps the beginning of a malformed line only", () => {
    expect(jsonRpcParse("x".repeat(10_000)).line).toHaveLength(200);
  });

  it("rejects what is pending on disposal with -32000", () => {
    expect(clientDisposed()).toEqual({ _tag: "JsonRpcError", code: CLIENT_DISPOSED, message: "Client disposed" });
    expect(CLIENT_DISPOSED).toBe(-32000);
  });

  it("reads the reason that goose puts into data", () => {
    expect(describeError(jsonRpcError(-32603, "Internal error", "no key"))).toBe("Internal error: no key");
    expect(describeError(new Error("plain"))).toBe("plain");
    expect(describeError("text")).toBe("text");
  });

  it.each([null, 1, {}, { _tag: "Other" }, { _tag: 3 }])("does not take %j for one of ours", (value) => expect(isGooseError(value)).toBe(false));
});
