// The page's own parts: new schedules, previews of artifacts, addresses.

import { describe, expect, it } from 'vitest';

import { fileOf, previewOf } from './artifacts';
import { auditAddress, auditLines, type AuditRecord, decisionText, endText } from './audit';
import { accessOf, linkPages, routesOf } from './docs';
import { commitText, type Entry, latencies } from './inspect';
import { parseRoute } from './route.svelte';
import { createParams, describeTime, jobProblem, type NewJob } from './schedules';

const job: NewJob = { id: 'news', cron: '0 9 * * *', prompt: ' What is new? ', manifest: null, values: {}, folder: ' ' };

describe('a new schedule', () => {
  it('of a prompt is a recipe with nothing else in it', () => {
    expect(jobProblem(job)).toBeNull();
    expect(createParams(job, 'Europe/Berlin')).toEqual({
      id: 'news', cron: '0 9 * * *', zone: 'Europe/Berlin', values: {}, recipe: { title: 'news', description: 'What is new?', prompt: 'What is new?' },
    });
  });
  it('of a recipe has its parameters and its folder', () => {
    const recipe = { title: 'News', prompt: 'of {{ topic }}' };
    const given = { ...job, prompt: '', manifest: { id: 'r', recipe }, values: { topic: 'geese' }, folder: '/w' };
    expect(jobProblem(given)).toBeNull();
    expect(createParams(given, 'UTC')).toEqual({ id: 'news', cron: '0 9 * * *', zone: 'UTC', recipe, values: { topic: 'geese' }, workingDir: '/w' });
  });
  it.each([[{ id: 'two words' }, 'name'], [{ id: '' }, 'name'], [{ cron: 'soon' }, 'five fields'], [{ prompt: ' ' }, 'what to do']])('is refused: %j', (change, why) => {
    expect(jobProblem({ ...job, ...change })).toContain(why);
  });
  it('is told in words where there are any', () => {
    expect([describeTime('0 9 * * 1-5'), describeTime('5 4 * * *')]).toEqual(['On weekdays at 9:00', '5 4 * * *']);
  });
});

describe('an artifact', () => {
  it.each([
    [{ name: 'a.html', mimeType: null, text: '' }, 'html'], [{ name: 'a', mimeType: 'text/html; charset=utf-8', text: '' }, 'html'],
    [{ name: 'a.md', mimeType: 'text/plain', text: '' }, 'markdown'], [{ name: 'a', mimeType: 'text/markdown', text: '' }, 'markdown'],
    [{ name: 'a.svg', mimeType: 'image/svg+xml', text: '<svg/>' }, 'text'], [{ name: 'a.svg', mimeType: 'image/svg+xml', blob: '' }, 'none'],
    [{ name: 'a.png', mimeType: 'image/png', blob: '' }, 'image'], [{ name: 'a.zip', mimeType: 'application/zip', blob: '' }, 'none'],
  ])('%j', (version, preview) => {
    expect(previewOf({ version: 0, ...version })).toBe(preview);
  });
  it('is a file of its own name and content', async () => {
    const file = fileOf({ name: 'notes/a.bin', version: 0, mimeType: 'application/x', blob: btoa('\u0000\u00ff') });
    expect([file.name, file.type, file.size]).toEqual(['a.bin', 'application/x', 2]);
  });
});

it('an address of an app has its name', () => {
  expect(parseRoute('#/apps')).toEqual({ view: 'apps', name: null });
  expect(parseRoute('#/apps/My%20app')).toEqual({ view: 'apps', name: 'My app' });
});

describe('the documentation', () => {
  it('links its own pages here, leaves other links, and has no pictures', () => {
    const text = 'See [ACP](acp.md#slash-commands), [a guide](guides/first.md), [home](https://example.org/a.md), [below](#x).\n![P](images/p.png)\n\nEnd';
    expect(linkPages(text, 'README', 'http://h/')).toBe(
      'See [ACP](http://h/#/docs/acp), [a guide](http://h/#/docs/guides/first), [home](https://example.org/a.md), [below](#x).\nEnd');
    expect(linkPages('[up](../acp.md) [beside](b.md)', 'guides/a', '/')).toBe('[up](/#/docs/acp) [beside](/#/docs/guides/b)');
  });
  it('lists routes by protocol with who may call them', () => {
    const operation = { tags: ['a2a'], security: [{ token: [] }, {}], 'x-scope': 'prompt' };
    const api = { tags: [], paths: { '/x': { get: { tags: ['gander'] } }, '/y': { post: operation } } };
    expect(routesOf(api, 'a2a')).toEqual([{ method: 'POST', path: '/y', operation }]);
    expect([accessOf(operation), accessOf({ tags: [] }), accessOf({ security: [{ token: [] }], 'x-scope': 'read' })]).toEqual(['prompt, or open', 'public', 'read']);
  });
});

describe('a log', () => {
  const entry = (at: number, kind: string, fields: object = {}) => ({ entry: { seq: at, at: at * 1000, event: { kind, ...fields } }, projections: {} }) as unknown as Entry;
  it('tells how long model, tools and people took', () => {
    const log = [
      entry(0, 'run_started'), entry(100, 'message_started'), entry(300, 'message_done'), entry(300, 'question_asked', { question: { id: 'q' } }),
      entry(1300, 'question_answered', { question: 'q' }), entry(1300, 'tool_started', { call: 't' }), entry(1350, 'tool_done', { call: 't' }),
      entry(1400, 'message_started'), entry(1500, 'message_done'), entry(1500, 'run_ended'),
    ];
    expect(latencies(log).map(({ what, seconds }) => [what, seconds])).toEqual([
      ['first response of the model', 0.1], ['message', 0.2], ['answer of a person', 1], ['tool', 0.05], ['message', 0.1], ['run', 1.5],
    ]);
  });
  it('says how its entries were stored', () => {
    expect(commitText({ first: 1, last: 2, synced: true, micros: 1234 })).toBe('synced in 1.2 ms');
    expect(commitText({ first: 1, last: 1, synced: false, micros: 90 })).toBe('committed in 0.1 ms');
  });
});

describe('the audit trail', () => {
  const record: AuditRecord = { session: 's', owner: 'owner', seq: 3, at: 0, tool: 'shell', decision: { type: 'unasked' } };
  it('is asked for by principal and time', () => {
    expect(auditAddress('', 0)).toBe('gander/audit?limit=1000');
    expect(auditAddress(' oidc:ada ', 1, 7_200_000)).toBe('gander/audit?limit=1000&principal=oidc%3Aada&since=3600000000');
  });
  it('says who decided and how it ended', () => {
    expect(decisionText(record)).toBe('allowed unasked');
    expect(decisionText({ ...record, decision: { type: 'chosen', choice: 'allow_once' }, answered_by: 'ada', answered_from: 'a2a' })).toBe('allow_once by ada (a2a)');
    expect(decisionText({ ...record, decision: { type: 'declined', reason: 'cancelled' } })).toBe('declined: cancelled');
    expect([endText(record), endText({ ...record, end: 'done', exit_code: 0 })]).toEqual(['has not ended', 'done, exit code 0']);
  });
  it('is exported as one line per action', () => {
    expect(auditLines([record, record]).split('\n')).toHaveLength(3);
  });
});
