/** Bounds of a numeric option. */
interface NumberBounds {
  readonly min: number;
  readonly max: number;
  /** Whether it must be a whole number. Default false */
  readonly isWhole?: boolean;
}

/** A block of options, with the defaults of all. */
interface OptionBlock<Options extends object> {
  /** Name of the block in errors. */
  readonly name: string;
  /** Undefined for an option that may be absent. */
  readonly defaults: Options;
  /** Bounds of every numeric option. */
  readonly bounds: {
    readonly [Name in keyof Options as Options[Name] extends number | undefined
      ? Name
      : never]: NumberBounds;
  };
}

/** Maximum of any count. */
export const countMax = 1_000_000;

/** Maximum of any time in options, in milliseconds: that of a timer, 24.8 days. */
export const timeMsMax = 2 ** 31 - 1;

/** Returns the bounds of a count, from `min`. */
export function count(min: number, max = countMax): NumberBounds {
  return { min, max, isWhole: true };
}

/** Returns the bounds of a time in milliseconds, from `min`. */
export function timeMs(min: number): NumberBounds {
  return { min, max: timeMsMax };
}

/** Returns the bounds of a ratio, from `min` to 1. */
export function ratio(min: number): NumberBounds {
  return { min, max: 1 };
}

/**
 * Returns the options, with defaults for those that are not given.
 *
 * @throws RangeError that names the option that is out of bounds
 */
export function withDefaults<Options extends object>(
  options: Partial<Options>,
  { name, defaults, bounds }: OptionBlock<Options>,
): Options {
  const whole: Options = { ...defaults, ...options };
  const boundsOf = new Map(Object.entries<NumberBounds>(bounds));
  for (const [option, value] of Object.entries(whole)) {
    const its = boundsOf.get(option);
    const isAbsent = value === undefined && !Object.hasOwn(options, option);
    if (its !== undefined && !isAbsent) checkNumber(`${name}.${option}`, value, its);
  }
  return whole;
}

/** @throws RangeError that names the option, unless it is a number within bounds */
export function checkNumber(name: string, value: unknown, bounds: NumberBounds): void {
  const { min, max, isWhole = false } = bounds;
  const isWithin = typeof value === "number" && value >= min && value <= max;
  if (isWithin && (!isWhole || Number.isInteger(value))) return;
  const what = isWhole ? "a whole number" : "a number";
  const given = typeof value === "number" ? String(value) : typeof value;
  throw new RangeError(`${name} must be ${what} from ${min} to ${max}, not ${given}`);
}

/** @throws RangeError that names the option, unless it is one of the words */
export function checkWord(name: string, value: unknown, words: readonly string[]): void {
  if (typeof value === "string" && words.includes(value)) return;
  throw new RangeError(`${name} must be one of ${words.join(", ")}`);
}
