/** Small guards for values from outside, composed to check whole messages. */

export type Guard<T> = (value: unknown) => value is T;

export const isString: Guard<string> = (value): value is string => typeof value === "string";
export const isNonEmptyString: Guard<string> = (value): value is string => typeof value === "string" && value !== "";
export const isNumber: Guard<number> = (value): value is number => typeof value === "number" && Number.isFinite(value);
export const isBoolean: Guard<boolean> = (value): value is boolean => typeof value === "boolean";
export const isUnknown: Guard<unknown> = (_value): _value is unknown => true;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isOneOf<const T extends readonly (string | boolean | null)[]>(values: T): Guard<T[number]> {
  return (value): value is T[number] => values.some((allowed) => allowed === value);
}

export function isEither<A, B>(first: Guard<A>, second: Guard<B>): Guard<A | B> {
  return (value): value is A | B => first(value) || second(value);
}

export function isArrayOf<T>(item: Guard<T>): Guard<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every((each) => item(each));
}

/** Line numbers are whole and start at 1. */
export const isLineNumber: Guard<number> = (value): value is number => Number.isInteger(value) && (value as number) >= 1;

type OptionalKeys<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];
type RequiredKeys<T> = Exclude<keyof T, OptionalKeys<T>>;

/** Guards of the fields that must be there, and of those that may be left out. Fields that are not listed are ignored. */
export type Shape<T> = {
  readonly required: { readonly [K in RequiredKeys<T>]: Guard<T[K]> };
  readonly optional?: { readonly [K in OptionalKeys<T>]: Guard<Exclude<T[K], undefined>> };
};

export function isObject<T extends object>(shape: Shape<T>): Guard<T> {
  const required = Object.entries(shape.required) as [string, Guard<unknown>][];
  const optional = Object.entries(shape.optional ?? {}) as [string, Guard<unknown>][];
  return (value): value is T =>
    isRecord(value) &&
    required.every(([name, guard]) => guard(value[name])) &&
    optional.every(([name, guard]) => value[name] === undefined || guard(value[name]));
}
