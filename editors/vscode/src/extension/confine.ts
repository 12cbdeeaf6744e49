/** Keeps the agent's file requests inside the folders that are open. */
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/**
 * The path if it lies in one of the roots, also after links were followed; rejects otherwise. A path that does not exist yet is judged
 * by its nearest folder that does.
 */
export async function confine(path: string, roots: readonly string[]): Promise<string> {
  if (!isAbsolute(path)) throw new Error(`the path must be absolute: ${path}`);
  const target = await existing(resolve(path));
  for (const root of roots) {
    if (isInside(target, await existing(resolve(root)))) return resolve(path);
  }
  throw new Error(`the path is outside of the folders that are open in the editor: ${path}`);
}

export function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The real path of the nearest part that exists, with the rest as it was written. */
async function existing(path: string): Promise<string> {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), ...missing);
    } catch (error) {
      // A link to nowhere must not count as a file that will be made here.
      const absent = (error as NodeJS.ErrnoException).code === "ENOENT" && at !== dirname(at) && !(await isLink(at));
      if (!absent) throw new Error(`the path cannot be followed: ${path}`);
      missing.unshift(basename(at));
    }
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}
