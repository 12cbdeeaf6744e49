// A flat JSON schema (elicitation, recipe parameters) as fields, and what was typed as values.

import type { FormProperty, FormSchema } from './acp';

export interface Choice { value: string; label: string }
interface Common { name: string; label: string; description: string | null; required: boolean }
export type Field = Common & (
  | { kind: 'text'; input: 'text' | 'email' | 'url' | 'date' | 'datetime-local'; value: string; limits: FormProperty }
  | { kind: 'number'; whole: boolean; value: string; limits: FormProperty }
  | { kind: 'checkbox'; value: boolean }
  | { kind: 'choice'; choices: Choice[]; value: string }
  | { kind: 'choices'; choices: Choice[]; value: string[]; limits: FormProperty }
);

const INPUTS = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' } as const;

export function formFields(schema: FormSchema): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const common = {
      name, label: property.title ?? name, description: property.description ?? null, required: required.has(name),
    };
    return { ...common, ...fieldOf(property) };
  });
}

type Specific = Field extends infer F ? (F extends Field ? Omit<F, keyof Common> : never) : never;

function fieldOf(property: FormProperty): Specific {
  const given = property.default;
  const choices = choicesOf(property);
  if (property.type === 'boolean') return { kind: 'checkbox', value: given === true };
  if (property.type === 'array') {
    const value = Array.isArray(given) ? given.map(String) : [];
    return { kind: 'choices', choices: itemChoices(property), value, limits: property };
  }
  if (choices) return { kind: 'choice', choices, value: typeof given === 'string' ? given : '' };
  if (property.type === 'number' || property.type === 'integer') {
    const value = typeof given === 'number' ? String(given) : '';
    return { kind: 'number', whole: property.type === 'integer', value, limits: property };
  }
  const input = INPUTS[property.format as keyof typeof INPUTS] ?? 'text';
  return { kind: 'text', input, value: typeof given === 'string' ? given : '', limits: property };
}

function choicesOf(property: FormProperty): Choice[] | null {
  if (property.oneOf) return property.oneOf.map((one) => ({ value: one.const, label: one.title ?? one.const }));
  return property.enum?.map((value, at) => ({ value, label: property.enumNames?.[at] ?? value })) ?? null;
}

function itemChoices({ items }: FormProperty): Choice[] {
  if (items?.anyOf) return items.anyOf.map((one) => ({ value: one.const, label: one.title ?? one.const }));
  return (items?.enum ?? []).map((value) => ({ value, label: value }));
}

/** What is wrong with a field, in words for the person; null if nothing is. */
export function fieldProblem(field: Field): string | null {
  const empty = field.kind === 'checkbox' ? false : field.value.length === 0;
  if (empty) return field.required ? `${field.label} is needed` : null;
  switch (field.kind) {
    case 'checkbox':
    case 'choice': return null;
    case 'text': return textProblem(field.value, field.limits);
    case 'number': return numberProblem(field.value, field.whole, field.limits);
    case 'choices': {
      const { minItems = 0, maxItems = Infinity } = field.limits;
      if (field.value.length < minItems) return `choose at least ${minItems}`;
      return field.value.length > maxItems ? `choose at most ${maxItems}` : null;
    }
  }
}

function textProblem(value: string, limits: FormProperty): string | null {
  const { minLength = 0, maxLength = Infinity, format } = limits;
  const length = [...value].length;
  if (length < minLength) return `at least ${minLength} characters`;
  if (length > maxLength) return `at most ${maxLength} characters`;
  if (format === 'email' && !/^[^@\s]+@[^@\s]+$/.test(value)) return 'no e-mail address';
  if (format === 'uri' && !URL.canParse(value)) return 'no address';
  return null;
}

function numberProblem(value: string, whole: boolean, { minimum, maximum }: FormProperty): string | null {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) return 'no number';
  if (whole && !Number.isInteger(number)) return 'no whole number';
  if (minimum !== undefined && number < minimum) return `at least ${minimum}`;
  if (maximum !== undefined && number > maximum) return `at most ${maximum}`;
  return null;
}

/** The values to send. Optional fields that were left empty are left out. */
export function formContent(fields: readonly Field[]): Record<string, unknown> {
  const content: Record<string, unknown> = {};
  for (const field of fields) {
    if (field.kind === 'checkbox') content[field.name] = field.value;
    else if (field.value.length === 0) continue;
    else if (field.kind === 'number') content[field.name] = Number(field.value);
    else content[field.name] = field.value;
  }
  return content;
}
