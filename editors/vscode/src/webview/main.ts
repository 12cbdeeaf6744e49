/** The webview's start: restores what was saved, wires bridge and session, mounts the view, and says that it is ready. */
import { mount } from "svelte";
import { setWords } from "../../../../web/src/chat/words";
import "../../../../web/src/chat/theme.css";
import "./webview.css";
import App from "./App.svelte";
import { Bridge, type VsCodeApi } from "./bridge";
import { BridgeSession } from "./chatSession";
import { FileSearch } from "./fileSearch";
import { isSavedState, savedState } from "./saved";
import { readStrings } from "../shared/strings";

declare function acquireVsCodeApi(): VsCodeApi;

/** How long after a change the state is saved: a long chat is not written anew with every frame. */
const SAVE_AFTER_MS = 500;

const VERSION = document.documentElement.dataset["version"] ?? "0";

const bridge = new Bridge(acquireVsCodeApi(), window);
const saved = bridge.getState(isSavedState);
const session = new BridgeSession(bridge, () => crypto.randomUUID(), saved?.view);
session.chips = saved?.chips ?? [];
session.cwd = saved?.cwd ?? "";
const files = new FileSearch(bridge);

let timer: ReturnType<typeof setTimeout> | undefined;
function save(): void {
  clearTimeout(timer);
  timer = undefined;
  session.flush();
  bridge.setState(savedState(session.view, session.chips, session.cwd));
}
session.onchange = () => {
  timer ??= setTimeout(save, SAVE_AFTER_MS);
};
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") save();
});

bridge.onMessage((message) => session.handle(message));
const target = document.querySelector("#app");
if (target === null) throw new Error("the page has no place for the chat");
const strings = readStrings(document.documentElement.dataset["strings"] ?? null);
session.strings = strings;
setWords(strings.chat);
mount(App, { target, props: { bridge, session, files, strings } });
bridge.initialize(VERSION);
