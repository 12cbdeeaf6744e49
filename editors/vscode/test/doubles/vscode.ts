/** A small double of VS Code's API: as much as the unit tests touch. */
type Listener<T> = (value: T) => void;

export class EventEmitter<T> {
  #listeners = new Set<Listener<T>>();
  event = (listener: Listener<T>) => {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  };
  fire(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}

export class Uri {
  constructor(readonly scheme: string, readonly path: string, readonly query = "", readonly authority = "") {}
  static file(path: string): Uri {
    return new Uri("file", path);
  }
  static parse(text: string): Uri {
    const match = /^([a-z-]+):(?:\/\/[^/]*)?(.*)$/i.exec(text);
    return new Uri(match?.[1] ?? "file", decodeURIComponent(match?.[2] ?? text));
  }
  static from(parts: { scheme: string; path: string; query: string; authority: string }): Uri {
    return new Uri(parts.scheme, parts.path, parts.query, parts.authority);
  }
  static joinPath(base: Uri, ...parts: string[]): Uri {
    return new Uri(base.scheme, [base.path, ...parts].join("/"));
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.authority}${this.path}${this.query === "" ? "" : `?${this.query}`}`;
  }
}

export class Position {
  constructor(readonly line: number, readonly character: number) {}
}
export class Range {
  constructor(readonly startLine: number, readonly startCharacter: number, readonly endLine: number, readonly endCharacter: number) {}
}
export class WorkspaceEdit {
  edits: { uri: Uri; text: string }[] = [];
  replace(uri: Uri, _range: Range, text: string): void {
    this.edits.push({ uri, text });
  }
}
export class FileSystemError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}
export class ThemeIcon {
  constructor(readonly id: string) {}
}
export class ThemeColor {
  constructor(readonly id: string) {}
}
export enum FileType { Unknown = 0, File = 1, Directory = 2 }
export enum StatusBarAlignment { Left = 1, Right = 2 }
export class TabInputTextDiff {
  constructor(readonly original: Uri, readonly modified: Uri) {}
}

export const l10n = {
  t: (text: string, ...values: unknown[]) => text.replace(/\{(\d+)\}/g, (_, index: string) => String(values[Number(index)])),
};
export const env = { language: "en", appName: "Test" };

/** What tests set and read. */
export const fake = {
  documents: [] as { uri: Uri; languageId: string; lineCount: number; getText(): string; save(): Promise<boolean> }[],
  files: new Map<string, Uint8Array>(),
  found: [] as Uri[],
  applied: [] as { uri: Uri; text: string }[],
  executed: [] as unknown[][],
  statusBarItems: [] as Record<string, unknown>[],
  terminals: [] as { name: string; pty: { onDidWrite: (listener: (text: string) => void) => unknown; open(): void; close(): void; handleInput(data: string): void } }[],
  answers: [] as (string | undefined)[],
  shown: [] as unknown[][],
  progress: 0,
  tabs: [] as { input: unknown }[],
  settings: {} as Record<string, unknown>,
  updated: [] as unknown[][],
  inputs: [] as (string | undefined)[],
};

export function resetFake(): void {
  Object.assign(fake, {
    documents: [], files: new Map(), found: [], applied: [], executed: [], statusBarItems: [], terminals: [], answers: [], shown: [], progress: 0,
    tabs: [], settings: {}, updated: [], inputs: [],
  });
}

export enum ConfigurationTarget { Global = 1 }

export const workspace = {
  get textDocuments() {
    return fake.documents;
  },
  fs: {
    readFile: async (uri: Uri) => {
      const file = fake.files.get(uri.fsPath);
      if (file === undefined) throw new FileSystemError("FileNotFound");
      return file;
    },
    writeFile: async (uri: Uri, content: Uint8Array) => void fake.files.set(uri.fsPath, content),
    stat: async (uri: Uri) => {
      if (!fake.files.has(uri.fsPath)) throw new FileSystemError("FileNotFound");
      return { type: FileType.File };
    },
  },
  findFiles: async () => fake.found,
  applyEdit: async (edit: WorkspaceEdit) => {
    fake.applied.push(...edit.edits);
    return true;
  },
  registerTextDocumentContentProvider: () => ({ dispose: () => {} }),
  onDidCloseTextDocument: () => ({ dispose: () => {} }),
  getConfiguration: (section: string) => ({
    get: (name: string, otherwise: unknown) => fake.settings[`${section}.${name}`] ?? otherwise,
    update: async (name: string, value: unknown, target: unknown) => void fake.updated.push([`${section}.${name}`, value, target]),
  }),
};

const noEvent = () => ({ dispose: () => {} });
export const window = {
  createStatusBarItem: () => {
    const item: Record<string, unknown> = { show: () => {}, dispose: () => {} };
    fake.statusBarItems.push(item);
    return item;
  },
  createTerminal: (options: (typeof fake.terminals)[number]) => {
    fake.terminals.push(options);
    return { show: () => fake.shown.push(["terminal", options.name]) };
  },
  showInformationMessage: async (...message: unknown[]) => {
    fake.shown.push(message);
    return fake.answers.shift();
  },
  showInputBox: async () => fake.inputs.shift(),
  withProgress: async (_options: unknown, task: () => Promise<void>) => {
    fake.progress += 1;
    await task();
    fake.progress -= 1;
  },
  tabGroups: {
    onDidChangeTabs: noEvent,
    onDidChangeTabGroups: noEvent,
    get all() {
      return [{ tabs: fake.tabs }];
    },
    get activeTabGroup() {
      return { activeTab: fake.tabs.at(-1) };
    },
    close: async (tabs: unknown[]) => void (fake.tabs = fake.tabs.filter((tab) => !tabs.includes(tab))),
  },
};
export const commands = {
  executeCommand: async (...call: unknown[]) => {
    fake.executed.push(call);
    if (call[0] === "vscode.diff") fake.tabs.push({ input: new TabInputTextDiff(call[1] as Uri, call[2] as Uri) });
  },
};
