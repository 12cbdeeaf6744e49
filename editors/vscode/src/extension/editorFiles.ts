/** Files as the editor has them: what the agent reads has the changes that are not saved, what it writes is seen at once. */
import { mkdir } from "node:fs/promises";
import { basename, dirname, relative } from "node:path";
import type { ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest } from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import type { ContextChip, FileSearchResult, LineRange } from "../shared/types";
import { confine, isInside } from "./confine";
import { rankFiles } from "./fileSearch";
import { linesOf } from "./promptBlocks";

/** More files than this are not looked through for a mention. */
const MAX_SEARCHED = 20_000;
const EXCLUDED = "**/{node_modules,.git,target,dist,.venv,__pycache__}/**";

export class EditorFiles {
  /** `roots`: the open folders and the folder of the session. */
  constructor(private readonly roots: () => readonly string[], private readonly newId: () => string) {}

  async readTextFile({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    const text = await this.#text(await confine(path, this.roots()));
    if (text === undefined) throw new Error(`no such file: ${path}`);
    if (line == null && limit == null) return { content: text };
    const startLine = Math.max(1, line ?? 1);
    const endLine = limit == null ? Number.MAX_SAFE_INTEGER : startLine + limit - 1;
    return { content: linesOf(text, { startLine, endLine }) };
  }

  /** An open document is changed in place and saved, so that undo works and nobody is asked which version is right. */
  async writeTextFile({ path, content }: WriteTextFileRequest): Promise<void> {
    const confined = await confine(path, this.roots());
    const uri = vscode.Uri.file(confined);
    const open = openDocument(confined);
    if (open === undefined) {
      await mkdir(dirname(confined), { recursive: true });
      await vscode.workspace.fs.writeFile(uri, Buffer.from(content));
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.replace(uri, new vscode.Range(0, 0, open.lineCount, 0), content);
    if (!(await vscode.workspace.applyEdit(edit)) || !(await open.save())) throw new Error(`the editor could not save the file: ${path}`);
  }

  /** For a diff: also outside of the folders, because only the person sees it. */
  async read(path: string): Promise<string | undefined> {
    return this.#text(path).catch(() => undefined);
  }

  async readLines(path: string, range: LineRange): Promise<string> {
    const text = await this.#text(path);
    if (text === undefined) throw new Error(`no such file: ${path}`);
    return linesOf(text, range);
  }

  /** Paths are relative to the session's folder, as the agent understands them; a file elsewhere has its whole path. */
  async search(query: string, cwd: string): Promise<FileSearchResult[]> {
    const found = await vscode.workspace.findFiles("**/*", EXCLUDED, MAX_SEARCHED);
    const byPath = new Map(found.map(({ fsPath }) => [isInside(fsPath, cwd) ? relative(cwd, fsPath) : fsPath, fsPath]));
    return rankFiles([...byPath.keys()], query).map((relativePath) => {
      const filePath = byPath.get(relativePath) ?? relativePath;
      return { filePath, fileName: basename(filePath), relativePath };
    });
  }

  /** The chip of a file that was dropped or chosen; undefined for anything that is no file on this machine. */
  async chipOf(address: string): Promise<ContextChip | undefined> {
    const given = address.startsWith("/") ? vscode.Uri.file(address) : vscode.Uri.parse(address);
    // The window names files of this machine by their remote address when it runs elsewhere; the extension runs beside the files.
    const uri = given.scheme === "vscode-remote" ? vscode.Uri.file(given.path) : given;
    if (uri.scheme !== "file") return undefined;
    try {
      const stat = await vscode.workspace.fs.stat(uri);
      if ((stat.type & vscode.FileType.File) === 0) return undefined;
    } catch {
      return undefined;
    }
    const languageId = openDocument(uri.fsPath)?.languageId;
    return { id: this.newId(), filePath: uri.fsPath, fileName: basename(uri.fsPath), ...(languageId !== undefined && { languageId }) };
  }

  /** The chip of a selection; without one it is the whole file. */
  chipOfEditor(editor: vscode.TextEditor): ContextChip | undefined {
    const { document, selection } = editor;
    if (document.uri.scheme !== "file") return undefined;
    const chip = { id: this.newId(), filePath: document.uri.fsPath, fileName: basename(document.uri.fsPath), languageId: document.languageId };
    if (selection.isEmpty) return chip;
    // A selection that ends before the first character of a line does not hold that line.
    const last = selection.end.character === 0 && selection.end.line > selection.start.line ? selection.end.line : selection.end.line + 1;
    return { ...chip, range: { startLine: selection.start.line + 1, endLine: last } };
  }

  async #text(path: string): Promise<string | undefined> {
    const open = openDocument(path);
    if (open !== undefined) return open.getText();
    try {
      return Buffer.from(await vscode.workspace.fs.readFile(vscode.Uri.file(path))).toString("utf8");
    } catch (error) {
      if (error instanceof vscode.FileSystemError && error.code === "FileNotFound") return undefined;
      throw error;
    }
  }
}

function openDocument(path: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.scheme === "file" && document.uri.fsPath === path);
}
