// The small pure parts: differences, forms, completion, the window of a list, tool texts.

import { describe, expect, it } from 'vitest';

import { applySuggestion, findTrigger, mentionedFiles, suggestCommands, suggestFiles } from './completion';
import { countChanges, diffLines, foldUnchanged, sideBySide } from './diff';
import { fieldProblem, formContent, formFields } from './form';
import { exitCode, inputText, outputText, proposedPlan } from './tool';
import { ESTIMATED_HEIGHT, visibleWindow } from './virtual';

describe('diffLines', () => {
  const shape = (before: string, after: string) => diffLines(before, after).map((row) => `${row.kind[0]}${row.text}`);

  it('finds what stayed', () => {
    expect(shape('a\nb\nc\n', 'a\nx\nc\nd\n')).toEqual(['sa', 'rb', 'ax', 'sc', 'ad']);
  });
  it('numbers lines of both sides', () => {
    expect(diffLines('a\nb', 'b\nc')).toEqual([
      { kind: 'removed', text: 'a', before: 1, after: null },
      { kind: 'same', text: 'b', before: 2, after: 1 },
      { kind: 'added', text: 'c', before: null, after: 2 },
    ]);
  });
  it('has nothing but additions for a new file', () => {
    expect(shape('', 'a\n')).toEqual(['aa']);
    expect(diffLines('', '')).toEqual([]);
  });
  it('stays bounded for large texts that share nothing', () => {
    const many = (name: string) => Array.from({ length: 5000 }, (_, at) => `${name}${at}`).join('\n');
    expect(countChanges(diffLines(many('a'), many('b')))).toEqual({ added: 5000, removed: 5000 });
  });
  it('rebuilds both texts from its rows, whatever they are', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below;
    for (let round = 0; round < 200; round += 1) {
      const make = () => Array.from({ length: random(12) }, () => 'abc'[random(3)]).join('\n');
      const [before, after] = [make(), make()];
      const rows = diffLines(before, after);
      const side = (without: string) => rows.filter((row) => row.kind !== without).map((row) => row.text).join('\n');
      expect([side('added'), side('removed')]).toEqual([before, after]);
    }
  });
  it('folds what is far from a change and pairs what replaces what', () => {
    const far = Array.from({ length: 20 }, (_, at) => `l${at}`);
    const folded = foldUnchanged(diffLines(far.join('\n'), [...far.slice(0, 19), 'new'].join('\n')));
    expect(folded[0]).toEqual({ kind: 'gap', hidden: 16 });
    expect(sideBySide(folded).at(-1)).toMatchObject({ left: { text: 'l19' }, right: { text: 'new' } });
  });
});

describe('forms', () => {
  const schema = {
    type: 'object', required: ['name', 'age'],
    properties: {
      name: { type: 'string', minLength: 2 }, age: { type: 'integer', minimum: 0 }, colour: { type: 'string', enum: ['r', 'g'] },
      sure: { type: 'boolean', default: true }, tags: { type: 'array', items: { enum: ['x', 'y'] }, maxItems: 1 },
    },
  };
  it('has a field for each property', () => {
    expect(formFields(schema).map((field) => field.kind)).toEqual(['text', 'number', 'choice', 'checkbox', 'choices']);
  });
  it('says what is wrong', () => {
    const [name, age, colour, , tags] = formFields(schema);
    if (name?.kind !== 'text' || age?.kind !== 'number' || tags?.kind !== 'choices' || !colour) throw new Error('fields');
    expect(fieldProblem(name)).toBe('name is needed');
    expect(fieldProblem({ ...name, value: 'x' })).toBe('at least 2 characters');
    expect(fieldProblem({ ...age, value: '1.5' })).toBe('no whole number');
    expect(fieldProblem({ ...age, value: '-1' })).toBe('at least 0');
    expect(fieldProblem({ ...tags, value: ['x', 'y'] })).toBe('choose at most 1');
    expect(fieldProblem(colour)).toBeNull();
  });
  it('sends numbers as numbers and leaves out what was left empty', () => {
    const fields = formFields(schema).map((field) => (field.kind === 'number' ? { ...field, value: '7' } : field));
    expect(formContent(fields)).toEqual({ age: 7, sure: true });
  });
});

describe('completion', () => {
  it('completes a command at the start only', () => {
    expect(findTrigger('/cl', 3)).toEqual({ kind: 'command', query: 'cl', from: 0, to: 3 });
    expect(findTrigger('see /cl', 7)).toBeNull();
    expect(findTrigger('/clear now', 10)).toBeNull();
  });
  it('completes a file after a space, and no e-mail address', () => {
    expect(findTrigger('look at @src/m', 14)).toEqual({ kind: 'file', query: 'src/m', from: 8, to: 14 });
    expect(findTrigger('me@src', 6)).toBeNull();
  });
  it('puts the better match first', () => {
    const commands = [{ name: 'subtitle', description: '' }, { name: 'title', description: '' }];
    expect(suggestCommands(commands, 'ti').map((one) => one.label)).toEqual(['/title', '/subtitle']);
  });
  it('goes on inside a folder', () => {
    const [folder] = suggestFiles(['src/']);
    const trigger = findTrigger('@s and', 2);
    if (!folder || !trigger) throw new Error('nothing found');
    expect(applySuggestion('@s and', trigger, folder)).toEqual({ text: '@src/ and', cursor: 5 });
  });
  it('finds each mentioned file once', () => {
    expect(mentionedFiles('@a.rs and @b/c.rs, not me@x.y. @a.rs')).toEqual(['a.rs', 'b/c.rs']);
  });
});

describe('visibleWindow', () => {
  it('has what is in view and the rest as space', () => {
    expect(visibleWindow(new Array(100).fill(10), 500, 100, 20)).toEqual({ from: 47, to: 62, above: 470, below: 380 });
  });
  it('guesses what was never measured, and loses no height', () => {
    const { above, below, from, to } = visibleWindow(new Array(2000).fill(0), 0, 800, 900);
    expect(above + below + (to - from) * ESTIMATED_HEIGHT).toBe(2000 * ESTIMATED_HEIGHT);
    expect(to).toBeLessThan(30);
  });
  it('has nothing for nothing', () => {
    expect(visibleWindow([], 0, 800, 900)).toEqual({ from: 0, to: 0, above: 0, below: 0 });
  });
});

describe('tool texts', () => {
  it('shows a command as one, other arguments by name', () => {
    expect(inputText({ kind: 'execute', rawInput: { command: 'ls' } })).toBe('$ ls');
    expect(inputText({ kind: 'read', rawInput: { path: 'a', lines: [1, 2] } })).toBe('path: a\nlines: [\n  1,\n  2\n]');
  });
  it('finds output and exit code', () => {
    expect(outputText({ content: [{ type: 'content', content: { type: 'text', text: 'x\n' } }] })).toBe('x');
    expect(exitCode({ rawOutput: { exit_code: 3 } })).toBe(3);
    expect(exitCode({ rawOutput: null })).toBeNull();
  });
  it('reads a proposed plan', () => {
    const toolCall = { toolCallId: 't', name: 'propose_plan', rawInput: { items: [{ text: 'a', priority: 'high' }, 'b'] } };
    expect(proposedPlan({ sessionId: 's', toolCall, options: [] })).toEqual([
      { content: 'a', priority: 'high', status: 'pending' }, { content: 'b', priority: 'medium', status: 'pending' },
    ]);
  });
});
