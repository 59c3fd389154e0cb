/** What an option that is a number may be. */
interface NumberBounds {
  readonly min: number;
  readonly max: number;
  /** Whether it is a whole number. Default false */
  readonly isWhole?: boolean;
}

/** A block of options with the defaults of all. */
interface OptionBlock<Options extends object> {
  /** Its name in errors. */
  readonly name: string;
  /** Undefined where an option may be absent. */
  readonly defaults: Options;
  /** Of every option that is a number. */
  readonly bounds: {
    readonly [Name in keyof Options as Options[Name] extends number | undefined
      ? Name
      : never]: NumberBounds;
  };
}

/** The most that any count may be. */
export const countMax = 1_000_000;

/** The longest time that any option may state, in milliseconds: a timer's, 24.8 days. */
export const timeMsMax = 2 ** 31 - 1;

/** A number of things, from `min`. */
export function count(min: number, max = countMax): NumberBounds {
  return { min, max, isWhole: true };
}

/** A time in milliseconds, from `min`. */
export function timeMs(min: number): NumberBounds {
  return { min, max: timeMsMax };
}

/** A share of a whole, from `min` to 1. */
export function ratio(min: number): NumberBounds {
  return { min, max: 1 };
}

/**
 * Options with the defaults of those that are not given.
 *
 * @throws RangeError that names the option which is out of bounds
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
