// goose's recipes as far as the page shows them.

import type { FormProperty, FormSchema } from '../chat';

export interface Parameter {
  key: string;
  input_type?: 'string' | 'number' | 'boolean' | 'date' | 'file' | 'select';
  requirement?: 'required' | 'optional' | 'user_prompt';
  description?: string;
  default?: string | number | boolean | null;
  options?: string[] | null;
}
export interface Recipe { title: string; description?: string; prompt?: string; parameters?: Parameter[] | null }
export interface Manifest { id: string; recipe: Recipe; slash_command?: string | null }

/** A recipe's parameters as the schema of a form. */
export function recipeSchema({ parameters }: Recipe): FormSchema {
  const properties: Record<string, FormProperty> = {};
  for (const parameter of parameters ?? []) properties[parameter.key] = property(parameter);
  const required = (parameters ?? []).filter((one) => one.requirement !== 'optional' && (one.default ?? '') === '').map((one) => one.key);
  return { type: 'object', properties, required };
}

function property({ key, input_type, description, default: given, options }: Parameter): FormProperty {
  const common = { title: key, ...(description ? { description } : {}) };
  const text = given === null || given === undefined ? {} : { default: String(given) };
  switch (input_type) {
    case 'number': return { ...common, type: 'number', ...(given === null || given === undefined ? {} : { default: Number(given) }) };
    case 'boolean': return { ...common, type: 'boolean', default: given === true || given === 'true' };
    case 'date': return { ...common, type: 'string', format: 'date', ...text };
    case 'select': return { ...common, type: 'string', enum: options ?? [], ...text };
    case 'string':
    case 'file':
    case undefined: return { ...common, type: 'string', ...text };
  }
}
