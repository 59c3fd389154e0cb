import { isMap } from "yaml";
import { any, duration, number, readBy, ruledText } from "../text/form.js";
import { field, inner, object } from "../text/object.js";
import { ratioBounds } from "../text/quantities.js";
import { nameRule, type TextRule } from "../text/text-rules.js";

/** Maximum time in a scenario: a day, in milliseconds. */
export const scenarioMsMax = 86_400_000;

/** A time that may be 0. */
export const anyTime = duration({ minMs: 0, maxMs: scenarioMsMax });

/** A time above 0. */
export const someTime = duration({ minMs: 1, maxMs: scenarioMsMax });

/** A name that results use. */
export const scenarioName = ruledText({ ...nameRule, charsMax: 40 });

/** The path of another file. */
const fileRule: TextRule = {
  charsMax: 1_024,
  forbidden: /[\p{Cc}\p{Cs}]/u,
  expected: "a file, relative to the scenario",
};

/** The path of another file, relative to the scenario's. */
export const scenarioFile = ruledText(fileRule);

/** Distribution of the times of a service or of the store, in milliseconds. */
export type TimeDistribution =
  | { readonly kind: "exponential"; readonly meanMs: number }
  | { readonly kind: "fixed"; readonly ms: number }
  | { readonly kind: "lognormal"; readonly medianMs: number; readonly p99Ms: number }
  | {
      readonly kind: "bimodal";
      readonly fastMs: number;
      readonly slowMs: number;
      readonly slowRatio: number;
    }
  | {
      readonly kind: "pareto";
      readonly minMs: number;
      readonly maxMs: number;
      readonly shape: number;
    }
  /** Drawn from the times in a file, each with the same probability. */
  | { readonly kind: "trace"; readonly file: string };

const lognormal = object(
  { title: "a lognormal distribution", docs: "Times whose logarithms are normally distributed." },
  {
    median: field(someTime, "The median.", { needs: "a duration" }),
    p99: field(someTime, "The 99th percentile.", { needs: "a duration" }),
  },
  {
    data: ({ median = 1, p99 = 1 }): TimeDistribution => {
      return { kind: "lognormal", medianMs: median, p99Ms: Math.max(p99, median) };
    },
    check(block, _, { median = 0, p99 = median }) {
      if (p99 >= median) return;
      block.refuseOrder(["p99"], '"p99" is below "median"', "a p99 of at least the median");
    },
  },
);

const bimodal = object(
  { title: "a bimodal distribution", docs: "Most times are short, and some are long." },
  {
    fast: field(someTime, "A short time.", { needs: "a duration" }),
    slow: field(someTime, "A long time.", { needs: "a duration" }),
    slowRatio: field(number(ratioBounds), "The share of long times.", { default: 0.01 }),
  },
  {
    data: ({ fast = 1, slow = 1, slowRatio }): TimeDistribution => {
      return { kind: "bimodal", fastMs: fast, slowMs: slow, slowRatio };
    },
  },
);

const pareto = object(
  { title: "a Pareto distribution", docs: "Times with a heavy tail, cut off at `max`." },
  {
    min: field(someTime, "The shortest time.", { needs: "a duration" }),
    max: field(someTime, "The longest time.", { needs: "a duration" }),
    shape: field(
      number({ min: 0.5, max: 10 }),
      "How fast the tail falls. Below 2, the variance grows with `max`.",
      { default: 1.5 },
    ),
  },
  {
    data: ({ min = 1, max = 1, shape }): TimeDistribution => {
      return { kind: "pareto", minMs: min, maxMs: Math.max(min, max), shape };
    },
    check(block, _, { min = 0, max = min }) {
      if (max >= min) return;
      block.refuseOrder(["max"], '"max" is below "min"', "a max of at least the min");
    },
  },
);

const kinds = ["exponential", "fixed", "lognormal", "bimodal", "pareto", "trace"] as const;

const distribution = object(
  {
    title: "a distribution",
    docs: "How times are distributed.",
    exclusive: [kinds],
    needed: [kinds],
  },
  {
    exponential: field(someTime, "Exponential, with this mean."),
    fixed: field(someTime, "Always this time."),
    lognormal: field(inner(lognormal), "Lognormal."),
    bimodal: field(inner(bimodal), "Short times and long times."),
    pareto: field(inner(pareto), "Heavy-tailed."),
    trace: field(scenarioFile, "Drawn from a file with one time in milliseconds on each line."),
  },
  {
    data: ({ exponential, fixed, lognormal: log, bimodal: two, pareto: heavy, trace }) => {
      if (exponential !== undefined) return { kind: "exponential" as const, meanMs: exponential };
      if (fixed !== undefined) return { kind: "fixed" as const, ms: fixed };
      if (trace !== undefined) return { kind: "trace" as const, file: trace };
      return log ?? two ?? heavy;
    },
    check(block) {
      if (kinds.some((kind) => !block.isLeftOut(kind))) return;
      const message = "the distribution has no kind";
      block.report("", { id: "HG125", message, expected: `one of ${kinds.join(", ")}` });
    },
  },
);

const distributionMap = inner(distribution);

/** A distribution; a duration alone is the mean of an exponential one. */
export const distributedTime = readBy<TimeDistribution>(
  any(someTime, distributionMap),
  (reader, place) => {
    if (isMap(reader.contentOf(place))) return distributionMap.read(reader, place);
    const meanMs = someTime.read(reader, place);
    return meanMs === undefined ? undefined : { kind: "exponential", meanMs };
  },
);
