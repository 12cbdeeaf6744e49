/** The manifest and the translations: nothing is named that does not exist, and nothing exists that is not named. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ENGLISH } from "../src/shared/strings";
import { DIFF_SCHEME } from "../src/extension/diffView";
import { VIEW_ID } from "../src/extension/webviewProvider";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(`${root}/${path}`, "utf8");
const json = (path: string) => JSON.parse(read(path)) as Record<string, never>;
const manifest = json("package.json") as unknown as {
  icon: string;
  contributes: {
    commands: { command: string }[];
    menus: Record<string, { command: string; when: string }[]>;
    keybindings: { command: string }[];
    configuration: { properties: Record<string, { scope: string }> };
    views: Record<string, { id: string }[]>;
    walkthroughs: { steps: { media: { markdown: string }; completionEvents?: string[] }[] }[];
  };
};
const sources = readdirSync(`${root}/src/extension`).map((name) => read(`src/extension/${name}`)).join("\n");
const commands = manifest.contributes.commands.map(({ command }) => command);

describe("manifest", () => {
  it("has every command that is registered, and no other", () => {
    const registered = [...read("src/extension/commands.ts").matchAll(/^ {4}"(gander\.\w+)":/gm)].map(([, name]) => name);
    expect([...commands].sort()).toEqual(registered.sort());
  });

  it("uses commands and views that exist", () => {
    const { menus, keybindings, walkthroughs, views } = manifest.contributes;
    for (const { command } of [...Object.values(menus).flat(), ...keybindings]) expect(commands).toContain(command);
    for (const { media, completionEvents } of walkthroughs.flatMap(({ steps }) => steps)) {
      expect(existsSync(`${root}/${media.markdown}`)).toBe(true);
      for (const event of completionEvents ?? []) expect([...commands.map((name) => `onCommand:${name}`), `onView:${VIEW_ID}`]).toContain(event);
    }
    expect(Object.values(views).flat().map(({ id }) => id)).toEqual([VIEW_ID]);
    expect(existsSync(`${root}/${manifest.icon}`)).toBe(true);
    expect(DIFF_SCHEME).toBe("gander-diff");
  });

  it("has every setting that is read, and lets no folder set one", () => {
    const { properties } = manifest.contributes.configuration;
    const names = [...read("src/extension/settings.ts").matchAll(/settings\.get<[^(]+>\("(\w+)"/g)].map(([, name]) => `gander.${name}`);
    expect(Object.keys(properties).sort()).toEqual(names.sort());
    for (const { scope } of Object.values(properties)) expect(scope).toBe("machine");
  });

  it("has a text for every placeholder, and no text for nothing", () => {
    const used = [...read("package.json").matchAll(/"%([\w.]+)%"/g)].map(([, name]) => name).sort();
    expect(Object.keys(json("package.nls.json")).sort()).toEqual([...new Set(used)]);
  });

  it("has every text of the sources in the bundle for translators", () => {
    const written = [...sources.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text ?? '""') as string);
    const { chat, status, ...texts } = ENGLISH;
    const all = new Set([...written, ...Object.values(texts), ...Object.values(chat), ...Object.values(status)]);
    expect(Object.keys(json("l10n/bundle.l10n.json")).sort()).toEqual([...all].sort());
  });

  it("has no text of its own in the components that it shares with the page", () => {
    const folder = join(root, "../../web/src/chat/components");
    for (const name of readdirSync(folder).filter((each) => each.endsWith(".svelte"))) {
      const text = readFileSync(join(folder, name), "utf8");
      expect([name, text.match(/(?:aria-label|title|placeholder|alt)="[A-Z][^"{]*"|>[A-Z][a-z]+[^<>{}=]*</g)]).toEqual([name, null]);
    }
  });

  it("locks packages by their hash, not by where they were fetched", () => {
    expect(read("package-lock.json")).not.toContain('"resolved"');
  });
});
