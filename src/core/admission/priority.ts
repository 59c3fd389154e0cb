/** A request's class. */
export type Priority = (typeof priorities)[number];

/** Who goes first, in that order. */
export const priorities = ["critical", "high", "normal", "low"] as const;

/** The request header that states a class, in lower case. */
export const defaultPriorityHeader = "x-request-priority";

/** Paths that are neither counted nor refused: probes. Their form is that of `matchesPath`. */
export const defaultBypassPaths: readonly string[] = [
  "/healthz",
  "/livez",
  "/readyz",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
];

/** Paths whose requests are critical unless something else classifies them. */
export const defaultAuthPaths: readonly string[] = ["/login/*", "/auth/*", "/oauth/*", "/oauth2/*"];

/** From which load a class is refused. */
export interface ShedThreshold {
  /** Load ratio from which some callers of the class are refused, the same ones each time. */
  readonly softRatio: number;
  /** Load ratio from which all of the class are refused; at least `softRatio`. */
  readonly hardRatio: number;
}

/** Thresholds by class, falling with it. */
export type ShedThresholds = Readonly<Record<Priority, ShedThreshold>>;

/** How far below the hard edge of a class some of its callers are refused already. */
const softEdgeRatio = 0.02;

/**
 * A threshold whose soft edge lies `softEdgeRatio` below the hard one.
 *
 * @param hardRatio load from which all of the class are refused, above 0
 */
export function shedThreshold(hardRatio: number): ShedThreshold {
  return { softRatio: Math.max(0, hardRatio - softEdgeRatio), hardRatio };
}

/**
 * Where a policy says nothing. Critical requests have no soft edge: while there is room, not one of
 * them is refused.
 */
export const defaultShedThresholds: ShedThresholds = {
  critical: { softRatio: 1, hardRatio: 1 },
  high: shedThreshold(0.95),
  normal: shedThreshold(0.9),
  low: shedThreshold(0.75),
};

/** A preset that keeps half of the service free of what can be done later. */
export const earlyShedThresholds: ShedThresholds = {
  ...defaultShedThresholds,
  low: shedThreshold(0.5),
};

/** Everybody is refused at a load of 1, and nobody below. */
const fullThreshold: ShedThreshold = { softRatio: 1, hardRatio: 1 };

/** The same for all classes: none is refused before another one. */
export const fullThresholds: ShedThresholds = {
  critical: fullThreshold,
  high: fullThreshold,
  normal: fullThreshold,
  low: fullThreshold,
};

/** The longest text that may state a class, in characters. */
const priorityCharactersMax = 64;

/** A class as a header or a policy states it, in any case; undefined for any other text. */
export function parsePriority(text: string): Priority | undefined {
  if (text.length > priorityCharactersMax) return undefined;
  const name = text.trim().toLowerCase();
  return priorities.find((priority) => priority === name);
}

/**
 * Which share of a class is refused at a load: 0 up to the soft edge, 1 from the hard one on, and a
 * straight line between.
 *
 * Example: soft 0.88, hard 0.90: at a load of 0.885 it is a quarter.
 */
export function shedRatio({ softRatio, hardRatio }: ShedThreshold, loadRatio: number): number {
  if (loadRatio >= hardRatio) return 1;
  if (loadRatio <= softRatio) return 0;
  return (loadRatio - softRatio) / (hardRatio - softRatio);
}

/** Who asks, and how loaded the service is without it. */
interface ShedQuestion {
  readonly priority: Priority;
  /** In-flight over limit, or what else makes the load; 1 is full. */
  readonly loadRatio: number;
  /**
   * A hash of the caller, uniform in [0, 1) and the same each time. So it is always the same
   * callers who are refused first, and the others see no error, instead of everybody seeing some.
   */
  readonly callerHashRatio: number;
}

/**
 * Whether a request is refused for its class at this load.
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
 * A number in [0, 1) that is always the same for a caller, in every replica, and as good as random
 * between callers: near a threshold the same callers keep service.
 *
 * Source: the hash FNV-1a of 32 bits over UTF-16 units, its bits mixed as MurmurHash3 ends.
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
