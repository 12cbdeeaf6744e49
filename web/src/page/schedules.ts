// What runs by the clock: jobs as the server lists them, and the parameters of a new one.

import type { Manifest, Recipe } from './recipes';

export interface Job {
  id: string;
  cron: string;
  zone?: string | null;
  paused: boolean;
  last_run?: string | null;
  next_run?: string | null;
  currently_running: boolean;
  current_session_id?: string | null;
  trouble?: string | null;
}

/** Times that most people mean; everything else is written in the five fields of cron. */
export const TIMES = [
  { cron: '0 9 * * 1-5', name: 'On weekdays at 9:00' },
  { cron: '0 9 * * *', name: 'Every day at 9:00' },
  { cron: '0 9 * * 1', name: 'Every Monday at 9:00' },
  { cron: '0 * * * *', name: 'Every hour' },
] as const;

export interface NewJob { id: string; cron: string; prompt: string; manifest: Manifest | null; values: Record<string, string>; folder: string }

/** Why there can be no such job yet; null if there can. */
export function jobProblem({ id, cron, prompt, manifest }: NewJob): string | null {
  if (!/^[\w-]{1,64}$/.test(id)) return 'The name has letters, digits, - and _ only.';
  if (![5, 6].includes(cron.trim().split(/\s+/).length)) return 'The time has five fields: minute, hour, day, month, weekday.';
  if (!manifest && prompt.trim() === '') return 'Say what to do.';
  return null;
}

/** The parameters of `schedules/create`. A prompt alone is a recipe with nothing else in it. */
export function createParams(job: NewJob, zone: string): Record<string, unknown> {
  const { id, cron, prompt, manifest, values, folder } = job;
  const recipe: Recipe = manifest?.recipe ?? { title: id, description: prompt.trim().slice(0, 200), prompt: prompt.trim() };
  return { id, cron: cron.trim(), zone, recipe, values, ...(folder.trim() && { workingDir: folder.trim() }) };
}

export function describeTime(cron: string): string {
  return TIMES.find((time) => time.cron === cron)?.name ?? cron;
}
