import { describe, expect, it } from "vitest";
import { buildPromptBlocks, chipLabel, fenceFor, linesOf } from "../src/extension/promptBlocks";
import { rankFiles } from "../src/extension/fileSearch";

const file = { id: "1", filePath: "/path/to/my file.ts", fileName: "my file.ts" };
const read = (text: string) => (_path: string, range: { startLine: number; endLine: number }) => Promise.resolve(linesOf(text, range));
const numbered = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join("\n");

describe("context chips", () => {
  it("sends a whole file as a link, for the agent to read", async () => {
    expect(await buildPromptBlocks("Hi", [file], read(""))).toEqual([
      { type: "resource_link", uri: "file:///path/to/my%20file.ts", name: "my file.ts", mimeType: "text/typescript" },
      { type: "text", text: "Hi" },
    ]);
  });

  it("sends a selection as text with its lines", async () => {
    const blocks = await buildPromptBlocks("Why?", [{ ...file, filePath: "/path/to/file.ts", range: { startLine: 10, endLine: 12 } }], read(numbered));
    expect(blocks).toEqual([
      { type: "text", text: "File: /path/to/file.ts:10-12\n```\nline 10\nline 11\nline 12\n```" },
      { type: "text", text: "Why?" },
    ]);
  });

  it("keeps the order of the chips and puts the text last", async () => {
    const chips = [file, { ...file, range: { startLine: 1, endLine: 1 } }, file];
    expect((await buildPromptBlocks("t", chips, read("x"))).map(({ type }) => type)).toEqual(["resource_link", "text", "resource_link", "text"]);
    expect(await buildPromptBlocks("", [file], read(""))).toHaveLength(1);
    expect(await buildPromptBlocks("", [], read(""))).toEqual([{ type: "text", text: "" }]);
  });

  it("cannot be left by a fence inside the selection", async () => {
    const text = "before\n```\ninside\n````\nafter";
    expect(fenceFor(text)).toBe("`````");
    const [block] = await buildPromptBlocks("", [{ ...file, range: { startLine: 1, endLine: 5 } }], read(text));
    expect(block).toEqual({ type: "text", text: `File: ${file.filePath}:1-5\n\`\`\`\`\`\n${text}\n\`\`\`\`\`` });
  });

  it.each([[1, 1, "line 1"], [39, 99, "line 39\nline 40"], [50, 60, ""]])("takes the lines %i to %i", (startLine, endLine, text) =>
    expect(linesOf(numbered, { startLine, endLine })).toBe(text));

  it.each([["a.rs", undefined, "text/x-rust"], ["a.unknown", "zig", "text/zig"], ["Makefile", undefined, "text/plain"], ["a.JSON", undefined, "application/json"]])("knows the type of %s", async (fileName, languageId, mimeType) => {
    const chip = { ...file, fileName, ...(languageId !== undefined && { languageId }) };
    expect(await buildPromptBlocks("", [chip], read(""))).toMatchObject([{ mimeType }]);
  });

  it("labels a chip with its lines", () => {
    expect(chipLabel(file)).toBe("my file.ts");
    expect(chipLabel({ ...file, range: { startLine: 10, endLine: 25 } })).toBe("my file.ts:10-25");
  });

  it("fails rather than send nothing for a selection that cannot be read", async () => {
    await expect(buildPromptBlocks("", [{ ...file, range: { startLine: 1, endLine: 2 } }], () => Promise.reject(new Error("gone")))).rejects.toThrow("gone");
  });
});

describe("file search", () => {
  const paths = ["src/main.ts", "src/domain/session.rs", "docs/session.md", "README.md", "src/remain.ts", "a/b/c/d/s-e-s.txt"];
  it.each([
    ["main", ["src/main.ts", "src/remain.ts", "src/domain/session.rs"]],
    ["SESSION", ["docs/session.md", "src/domain/session.rs"]],
    ["docs/", ["docs/session.md"]],
    ["rdme", ["README.md", "src/domain/session.rs"]],
    ["zzz", []],
  ])("ranks %s", (query, expected) => expect(rankFiles(paths, query)).toEqual(expected));
  it("gives a short list for an empty query", () => expect(rankFiles(Array.from({ length: 100 }, (_, index) => `f${index}`), "")).toHaveLength(30));
});
