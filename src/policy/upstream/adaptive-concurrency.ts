import { duration, number, whole } from "../text/form.js";
import { field, inner, object } from "../text/object.js";
import {
  type DurationBounds,
  percentBounds,
  permitBounds,
  positivePercentBounds,
} from "../text/quantities.js";
import { thresholdBounds } from "./circuit-breakers.js";

/** Maximum time between two limits or two measurements: an hour. */
export const measureMsMax = 3_600_000;

/** The bounds of intervals and of a fixed round trip. */
const measureBounds: DurationBounds = { minMs: 1, maxMs: measureMsMax };

/**
 * Envoy's gradient controller. Source:
 * envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency.
 */
export interface AdaptiveConcurrencyPolicy {
  /** Default 1,000. */
  readonly limitMax: number;
  /** Default 3. */
  readonly limitMin: number;
  /** Percentile of the latency that is used, above 0 to 100. Default 90. */
  readonly percentile: number;
  /** Time between two limits. Default 100. */
  readonly updateMs: number;
  readonly minRtt:
    | {
        readonly kind: "sampled";
        /** Default 60,000. */
        readonly everyMs: number;
        /** Default 50. */
        readonly requestCount: number;
        /** Random delay of a measurement, in percent of the interval, 0 to 100. Default 15. */
        readonly jitterPercent: number;
        /** Added to the measurement, in percent, 0 to 100. Default 25. */
        readonly bufferPercent: number;
      }
    | {
        /** Never measured by Envoy. Required if Headgate pins the limit. */
        readonly kind: "fixed";
        readonly ms: number;
        readonly bufferPercent: number;
      };
}

/** Default sampling of a round trip. */
const defaultMinRtt = {
  kind: "sampled",
  everyMs: 60_000,
  requestCount: 50,
  jitterPercent: 15,
  bufferPercent: 25,
} as const satisfies AdaptiveConcurrencyPolicy["minRtt"];

const sampledNames = ["interval", "requestCount", "jitterPercent"] as const;

const minRtt = object(
  {
    title: "a minRtt",
    docs: "The round trip time without load: fixed, or sampled from time to time.",
    exclusive: sampledNames.map((name) => ["fixed", name]),
  },
  {
    fixed: field(
      duration(measureBounds),
      "A fixed value instead of sampling. Required if Headgate drives the filter.",
      {
        larger: "looser",
        as: "ms",
      },
    ),
    interval: field(duration(measureBounds), "The interval between measurements.", {
      larger: "different",
      as: "everyMs",
      dependentDefault: defaultMinRtt.everyMs,
    }),
    requestCount: field(whole(thresholdBounds), "Requests in a measurement.", {
      larger: "different",
      dependentDefault: defaultMinRtt.requestCount,
    }),
    jitterPercent: field(
      number(percentBounds),
      "Random delay of a measurement, in percent of the interval.",
      { larger: "different", dependentDefault: defaultMinRtt.jitterPercent },
    ),
    bufferPercent: field(number(percentBounds), "Percent added to the measured value.", {
      larger: "looser",
      dependentDefault: defaultMinRtt.bufferPercent,
    }),
  },
);

type MinRtt = AdaptiveConcurrencyPolicy["minRtt"];

/** Reads `{fixed: 20ms}`, or the settings for sampling. */
function minRttOf(written: typeof minRtt.defaults | undefined, base: MinRtt): MinRtt {
  if (written === undefined) return base;
  const { ms, bufferPercent = base.bufferPercent, ...own } = written;
  const isSampled = Object.values(own).some((value) => value !== undefined);
  const fixedMs = ms ?? (base.kind === "fixed" ? base.ms : undefined);
  if (fixedMs !== undefined && !isSampled) return { kind: "fixed", ms: fixedMs, bufferPercent };
  const defaults = base.kind === "sampled" ? base : defaultMinRtt;
  return {
    kind: "sampled",
    everyMs: own.everyMs ?? defaults.everyMs,
    requestCount: own.requestCount ?? defaults.requestCount,
    jitterPercent: own.jitterPercent ?? defaults.jitterPercent,
    bufferPercent,
  };
}

const [limitMaxDefault, limitMinDefault] = [1_000, 3];

/** `adaptiveConcurrency`. */
export const adaptiveConcurrency = object(
  {
    title: "an adaptiveConcurrency",
    docs: "Envoy's adaptive concurrency filter (gradient controller), in each proxy.",
  },
  {
    maxLimit: field(whole(permitBounds), "The maximum limit.", {
      larger: "looser",
      as: "limitMax",
      dependentDefault: limitMaxDefault,
    }),
    minLimit: field(whole(permitBounds), "The minimum limit.", {
      larger: "looser",
      as: "limitMin",
      dependentDefault: limitMinDefault,
    }),
    percentile: field(number(positivePercentBounds), "The latency percentile that is used.", {
      larger: "different",
      default: 90,
    }),
    updateInterval: field(duration(measureBounds), "The interval between updates of the limit.", {
      larger: "different",
      as: "updateMs",
      default: 100,
    }),
    minRtt: field(inner(minRtt), "The round trip time without load. Default: sampled."),
  },
  {
    data(read, base?: AdaptiveConcurrencyPolicy): AdaptiveConcurrencyPolicy {
      const defaults = base ?? { limitMin: limitMinDefault, limitMax: limitMaxDefault };
      const limitMin =
        read.limitMin ?? Math.min(defaults.limitMin, read.limitMax ?? defaults.limitMin);
      const limitMax = read.limitMax ?? Math.max(defaults.limitMax, limitMin);
      return {
        ...read,
        limitMin,
        limitMax,
        minRtt: minRttOf(read.minRtt, base?.minRtt ?? defaultMinRtt),
      };
    },
    check(block, { limitMin, limitMax }) {
      if (limitMin <= limitMax) return;
      const message = `minLimit is ${limitMin}, which is above maxLimit, ${limitMax}`;
      block.refuseOrder(["minLimit"], message, "at most maxLimit");
    },
  },
);
