import { isUtf8 } from "node:buffer";
import { type KeyPart, keyValueLengthMax, throttleKey } from "../../core/limits/key.js";
import { hitsMax, type LimitKey } from "../../core/limits/limit.js";
import {
  drainsTooSlowly,
  type ThrottleNumbers,
  throttlePeriodSecondsMax,
} from "../../core/limits/throttle.js";

/** The contents of a `CL.THROTTLE` command. */
export interface ThrottleCommand {
  readonly key: LimitKey;
  readonly numbers: ThrottleNumbers;
}

/**
 * Reads the arguments of `CL.THROTTLE key max_burst count period [quantity]`. If they are invalid,
 * returns an error for the client, which contains none of its values.
 *
 * @param digest a cryptographic hash in hexadecimal, for keys that are long or not text
 */
export function parseThrottle(
  parts: readonly Buffer[],
  digest: (text: string) => string,
): ThrottleCommand | string {
  const [, key, ...texts] = parts;
  if (key === undefined || texts.length < 3 || texts.length > 4) return wrongCount;
  const [maxBurst, count, periodSeconds, given] = texts.map(parseInteger);
  const quantity = texts.length === 4 ? given : 1;
  if (!isWithin(maxBurst, bounds.max_burst)) return outside("max_burst");
  if (!isWithin(count, bounds.count)) return outside("count");
  if (!isWithin(periodSeconds, bounds.period)) return outside("period");
  if (!isWithin(quantity, bounds.quantity)) return outside("quantity");
  const numbers = { maxBurst, count, periodSeconds, quantity };
  if (drainsTooSlowly(numbers)) return tooSlow;
  return { key: throttleKey(keyPart(key, digest)), numbers };
}

type Bounds = readonly [min: number, max: number];

const bounds = {
  max_burst: [0, hitsMax - 1],
  count: [1, hitsMax],
  period: [1, throttlePeriodSecondsMax],
  quantity: [0, hitsMax],
} as const satisfies Readonly<Record<string, Bounds>>;

function isWithin(value: number | undefined, [min, max]: Bounds): value is number {
  return value !== undefined && value >= min && value <= max;
}

function outside(name: keyof typeof bounds): string {
  const [min, max] = bounds[name];
  return `ERR ${name} must be an integer from ${min} to ${max}`;
}

const wrongCount =
  "ERR wrong number of arguments: CL.THROTTLE key max_burst count period [quantity]";
const tooSlow = "ERR max_burst + 1 at count per period must drain within ten years";

/** Maximum number of digits of each number in a command. */
const digitsMax = 10;

/** Reads an integer in the form of Redis: without a sign, and without leading zeros. */
function parseInteger(bytes: Buffer): number | undefined {
  if (bytes.length > digitsMax) return undefined;
  const text = bytes.toString("latin1");
  return /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : undefined;
}

/** Keys are bytes: a short text is used as it is, and anything else is replaced by its digest. */
function keyPart(bytes: Buffer, digest: (text: string) => string): KeyPart {
  const isText = bytes.length <= keyValueLengthMax && isUtf8(bytes);
  return isText ? { value: bytes.toString() } : { digest: digest(bytes.toString("latin1")) };
}
