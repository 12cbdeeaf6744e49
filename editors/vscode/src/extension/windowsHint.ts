/** On Windows gander runs inside WSL: what to do, and the command for it. */
import { ENGLISH } from "../shared/strings";
import type { VersionStatus } from "../shared/types";

/** The command reopens the folder in the default distribution of WSL, where Linux's gander can be installed. */
export function windowsHint(platform: NodeJS.Platform, folder: string): Pick<VersionStatus, "hint"> | Record<string, never> {
  if (platform !== "win32") return {};
  return { hint: { text: ENGLISH.windowsHint, command: `wsl --install; code --remote wsl+Ubuntu "${wslPath(folder)}"` } };
}

/** `C:\Users\me` is `/mnt/c/Users/me` inside WSL. */
export function wslPath(folder: string): string {
  const match = /^([A-Za-z]):[\\/]?(.*)$/.exec(folder);
  if (match === null) return folder.replaceAll("\\", "/");
  const [, drive = "", rest = ""] = match;
  return `/mnt/${drive.toLowerCase()}/${rest.replaceAll("\\", "/")}`;
}
