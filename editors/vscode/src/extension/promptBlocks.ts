/** Context chips and the typed text as the content blocks of a prompt. */
import { pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ContextChip, LineRange } from "../shared/types";

/** Reads a file as the editor has it, with changes that are not saved. */
export type ReadLines = (filePath: string, range: LineRange) => Promise<string>;

/** A chip with a range is inlined, a whole file is a link that the agent follows; the typed text comes last. */
export async function buildPromptBlocks(text: string, chips: readonly ContextChip[], readLines: ReadLines): Promise<ContentBlock[]> {
  const blocks: ContentBlock[] = [];
  for (const chip of chips) {
    blocks.push(chip.range === undefined ? fileLink(chip) : await selection(chip, chip.range, readLines));
  }
  if (text !== "" || blocks.length === 0) blocks.push({ type: "text", text });
  return blocks;
}

function fileLink(chip: ContextChip): ContentBlock {
  return { type: "resource_link", uri: pathToFileURL(chip.filePath).href, name: chip.fileName, mimeType: mimeType(chip) };
}

async function selection(chip: ContextChip, range: LineRange, readLines: ReadLines): Promise<ContentBlock> {
  const content = (await readLines(chip.filePath, range)).replace(/\r?\n$/, "");
  const fence = fenceFor(content);
  return { type: "text", text: `File: ${chip.filePath}:${range.startLine}-${range.endLine}\n${fence}\n${content}\n${fence}` };
}

/** A fence longer than any run of backticks inside, so that the content cannot end it. */
export function fenceFor(content: string): string {
  const longest = [...content.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 0);
  return "`".repeat(Math.max(3, longest + 1));
}

/** The lines of a text, counted from 1, both ends included. A range that reaches past the end gives what there is. */
export function linesOf(text: string, { startLine, endLine }: LineRange): string {
  return text.split("\n").slice(startLine - 1, endLine).join("\n");
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  c: "text/x-c", cpp: "text/x-c++", css: "text/css", csv: "text/csv", go: "text/x-go", html: "text/html", java: "text/x-java",
  js: "text/javascript", json: "application/json", jsx: "text/javascript", md: "text/markdown", mjs: "text/javascript", py: "text/x-python",
  rb: "text/x-ruby", rs: "text/x-rust", sh: "text/x-shellscript", svg: "image/svg+xml", toml: "application/toml", ts: "text/typescript",
  tsx: "text/typescript", txt: "text/plain", xml: "application/xml", yaml: "application/yaml", yml: "application/yaml",
};

function mimeType({ fileName, languageId }: ContextChip): string {
  const extension = fileName.slice(fileName.lastIndexOf(".") + 1).toLowerCase();
  const known = MIME_TYPES[extension];
  if (known !== undefined) return known;
  return languageId === undefined || languageId === "plaintext" ? "text/plain" : `text/${languageId}`;
}

/** How a chip is written beside the input: `file.ts` or `file.ts:10-25`. */
export function chipLabel({ fileName, range }: ContextChip): string {
  return range === undefined ? fileName : `${fileName}:${range.startLine}-${range.endLine}`;
}
