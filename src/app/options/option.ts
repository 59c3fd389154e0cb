/** The value of an option's text, or the reason why it has none, which never contains the text. */
export type ParsedOption<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "problem"; readonly message: string };

/** One setting of the process, with all facts about it in one place. */
export interface OptionRow<T> {
  /** Environment name. The flag is derived from it. */
  readonly env: string;
  /** Placeholder of the value in help. */
  readonly valueName: string;
  readonly defaultValue: T;
  /** The default in help. Absent if there is no default. */
  readonly defaultText?: string;
  /** One or two sentences, Markdown. */
  readonly docs: string;
  /** The value may also come from the file that `<env>_FILE` names. It has no flag. */
  readonly isSecret?: true;
  readonly parse: (text: string) => ParsedOption<T>;
}

/**
 * Environment names of envoyproxy/ratelimit that are accepted with any value, and have no effect
 * here. A notice at the start says so, for users who bring a configuration along.
 */
export interface IgnoredOptionRow {
  readonly names: readonly string[];
  /** Why nothing is lost: one clause, Markdown, without a capital and without a full stop. */
  readonly reason: string;
}

/** Fields that describe every kind of option. */
export interface OptionText {
  readonly env: string;
  readonly docs: string;
}

/**
 * Returns the long flag of an option without dashes: its environment name in lower case, without
 * the common prefix of Headgate's or of the control plane's names. Undefined for secrets: a flag
 * would show them to all users of the machine.
 */
export function optionFlag(row: Pick<OptionRow<unknown>, "env" | "isSecret">): string | undefined {
  if (row.isSecret) return undefined;
  const name = row.env.replace(/^(?:HEADGATE|CONFIG_GRPC)_/, "");
  return name.toLowerCase().replaceAll("_", "-");
}

/** Creates an option for any text, which may be empty. */
export function textOption(
  row: OptionText & { readonly valueName: string; readonly defaultValue: string },
): OptionRow<string> {
  return { ...row, defaultText: row.defaultValue, parse: value };
}

/** Creates an option for an optional text. An empty one counts as left out. */
export function optionalTextOption(
  row: OptionText & { readonly valueName: string },
): OptionRow<string | undefined> {
  return { ...row, defaultValue: undefined, parse: (text) => value(text || undefined) };
}

/** Creates an option for a secret: from the environment or a file, never from a flag. */
export function secretOption(
  row: OptionText & { readonly valueName: string },
): OptionRow<string | undefined> {
  return { ...optionalTextOption(row), isSecret: true };
}

/** Description of an option for a number. Both bounds are valid values. */
interface NumberText extends OptionText {
  readonly range: readonly [min: number, max: number];
  readonly defaultValue: number;
}

/** Creates an option for a whole number. */
export function wholeNumberOption(row: NumberText): OptionRow<number> {
  return numberOption(row, { pattern: /^[0-9]{1,15}$/, kind: "a whole number" });
}

/** Creates an option for a number that may have a fraction. */
export function decimalOption(row: NumberText): OptionRow<number> {
  return numberOption(row, { pattern: /^[0-9]{1,9}(?:\.[0-9]{1,9})?$/, kind: "a number" });
}

function numberOption(
  { range: [min, max], ...rest }: NumberText,
  { pattern, kind }: { readonly pattern: RegExp; readonly kind: string },
): OptionRow<number> {
  const parse = (text: string): ParsedOption<number> => {
    const number = Number(text);
    if (pattern.test(text) && number >= min && number <= max) return value(number);
    return { kind: "problem", message: `must be ${kind} from ${min} to ${max}` };
  };
  return { ...rest, valueName: "NUMBER", defaultText: String(rest.defaultValue), parse };
}

/** Creates an option for one of a few words, in any case. */
export function choiceOption<T extends string>(
  row: OptionText & {
    readonly choices: readonly T[];
    /** Placeholder of the value in help. Default: the choices themselves. */
    readonly valueName?: string;
    /** Words of envoyproxy/ratelimit that are known but refused, with the reason. */
    readonly refusals?: ReadonlyMap<string, string>;
    readonly defaultValue: T;
  },
): OptionRow<T> {
  const { choices, refusals, valueName = choices.join("|"), ...rest } = row;
  const parse = (text: string): ParsedOption<T> => {
    const found = choices.find((choice) => choice === text.toLowerCase());
    if (found !== undefined) return value(found);
    const message = refusals?.get(text.toLowerCase()) ?? `must be one of ${choices.join(", ")}`;
    return { kind: "problem", message };
  };
  return { ...rest, valueName, defaultText: row.defaultValue, parse };
}

/** Source: Go's strconv.ParseBool, with which envoyproxy/ratelimit reads its switches. */
const switchWords: ReadonlyMap<string, boolean> = new Map([
  ...["1", "t", "true"].map((word) => [word, true] as const),
  ...["0", "f", "false"].map((word) => [word, false] as const),
]);

/** Creates an option that is on or off. */
export function switchOption(
  row: OptionText & { readonly defaultValue: boolean },
): OptionRow<boolean> {
  const parse = (text: string): ParsedOption<boolean> => {
    const found = switchWords.get(text.toLowerCase());
    if (found !== undefined) return value(found);
    return { kind: "problem", message: "must be true or false" };
  };
  return { ...row, valueName: "true|false", defaultText: String(row.defaultValue), parse };
}

/** Creates a switch whose value is undefined unless it is set. */
export function optionalSwitchOption(row: OptionText): OptionRow<boolean | undefined> {
  const { defaultText: _, ...switched } = switchOption({ ...row, defaultValue: false });
  return { ...switched, defaultValue: undefined };
}

const durationUnitMs: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

/** Creates an option for Go's times in whole numbers: `250ms`, `10s`, `1h30m`. Value in ms. */
export function durationOption(
  row: OptionText & {
    readonly defaultText: string;
    readonly defaultValue: number;
    /** Default 0. */
    readonly minMs?: number;
    readonly maxMs: number;
  },
): OptionRow<number> {
  const { minMs = 0, maxMs, ...rest } = row;
  const parse = (text: string): ParsedOption<number> => {
    const ms = durationMs(text);
    if (ms !== undefined && ms >= minMs && ms <= maxMs) return value(ms);
    const atLeast = minMs === 0 ? "" : `at least ${minMs}ms and `;
    return {
      kind: "problem",
      message: `must be a time like 250ms, 10s or 1h30m, ${atLeast}at most ${maxMs}ms`,
    };
  };
  return { ...rest, valueName: "TIME", parse };
}

function durationMs(text: string): number | undefined {
  if (text === "0") return 0;
  if (!/^(?:[0-9]{1,12}(?:ms|s|m|h))+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(/([0-9]+)(ms|s|m|h)/g)) {
    totalMs += Number(count) * (durationUnitMs.get(unit ?? "") ?? 0);
  }
  return totalMs;
}

function value<T>(of: T): ParsedOption<T> {
  return { kind: "value", value: of };
}
