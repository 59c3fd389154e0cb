/** A request's class. */
export type Priority = (typeof priorities)[number];

/** All classes, the highest first. */
export const priorities = ["critical", "high", "normal", "low"] as const;

/** The request header that states a class, in lower case. */
export const defaultPriorityHeader = "x-request-priority";

/** Paths that are neither counted nor refused: probes. They have the format of `matchesPath`. */
export const defaultBypassPaths: readonly string[] = [
  "/healthz",
  "/livez",
  "/readyz",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
];

/** Paths whose requests are critical unless something else classifies them. */
export const defaultAuthPaths: readonly string[] = ["/login/*", "/auth/*", "/oauth/*", "/oauth2/*"];

/** Load from which a class is refused. */
export interface ShedThreshold {
  /** Load ratio from which some callers of the class are refused, the same ones each time. */
  readonly softRatio: number;
  /** Load ratio from which all of the class are refused; at least `softRatio`. */
  readonly hardRatio: number;
}

/** Thresholds by class, not higher for lower classes. */
export type ShedThresholds = Readonly<Record<Priority, ShedThreshold>>;

/** Distance below the hard threshold of a class from which some of its callers are refused. */
const softEdgeRatio = 0.02;

/**
 * Returns a threshold whose soft ratio is `softEdgeRatio` below the hard one.
 *
 * @param hardRatio load from which all of the class are refused, above 0
 */
export function shedThreshold(hardRatio: number): ShedThreshold {
  return { softRatio: Math.max(0, hardRatio - softEdgeRatio), hardRatio };
}

/**
 * Thresholds if a policy sets none. Critical requests have no soft range: while there is room, none
 * of them is refused.
 */
export const defaultShedThresholds: ShedThresholds = {
  critical: { softRatio: 1, hardRatio: 1 },
  high: shedThreshold(0.95),
  normal: shedThreshold(0.9),
  low: shedThreshold(0.75),
};

/** A preset that keeps half of the service free of requests that can be served later. */
export const earlyShedThresholds: ShedThresholds = {
  ...defaultShedThresholds,
  low: shedThreshold(0.5),
};

/** All requests are refused from a load of 1 on, and none below. */
const fullThreshold: ShedThreshold = { softRatio: 1, hardRatio: 1 };

/** The same for all classes: none is refused before another one. */
export const fullThresholds: ShedThresholds = {
  critical: fullThreshold,
  high: fullThreshold,
  normal: fullThreshold,
  low: fullThreshold,
};

/** Maximum length of a text that states a class, in characters. */
const priorityCharactersMax = 64;

/** Parses a class from a header or a policy, in any case; undefined for any other text. */
export function parsePriority(text: string): Priority | undefined {
  if (text.length > priorityCharactersMax) return undefined;
  const name = text.trim().toLowerCase();
  return priorities.find((priority) => priority === name);
}

/**
 * Returns the share of a class to refuse at a load: 0 up to the soft ratio, 1 from the hard one on,
 * and linear between.
 *
 * Example: soft 0.88, hard 0.90: at a load of 0.885 it is a quarter.
 */
export function shedRatio({ softRatio, hardRatio }: ShedThreshold, loadRatio: number): number {
  if (loadRatio >= hardRatio) return 1;
  if (loadRatio <= softRatio) return 0;
  return (loadRatio - softRatio) / (hardRatio - softRatio);
}

/** A request, and the load of the service without it. */
interface ShedQuestion {
  readonly priority: Priority;
  /** Requests in flight over the limit, or the combined load; 1 is full. */
  readonly loadRatio: number;
  /**
   * A hash of the caller, uniform in [0, 1) and the same each time. So the same callers are always
   * refused first and the others see no errors, instead of all callers seeing some.
   */
  readonly callerHashRatio: number;
}

/**
 * Reports whether a request is refused at this load because of its class.
 *
 * Example: by the defaults, at a load of 0.92, low and normal are refused, high and critical pass.
 */
export function sheds(
  thresholds: ShedThresholds,
  { priority, loadRatio, callerHashRatio }: ShedQuestion,
): boolean {
  return callerHashRatio < shedRatio(thresholds[priority], loadRatio);
}

/**
 * Returns a number in [0, 1) that is always the same for a caller, in each replica, and as good as
 * random between callers: near a threshold, the same callers keep service.
 *
 * Source: the 32-bit hash FNV-1a over UTF-16 units, with the final mix of MurmurHash3.
 */
export function callerHashRatio(caller: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < caller.length; i += 1) {
    hash = Math.imul(hash ^ caller.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
