import type { LawName } from "../../core/concurrency/concurrency-laws.js";
import { latencyShedWindowCountMax } from "../../core/concurrency/latency-shed.js";
import type { RttStatistic } from "../../core/concurrency/rtt-statistic.js";
import { duration, number, readBy, text, whole, words } from "../text/form.js";
import { field, inner, type ObjectForm, object } from "../text/object.js";
import { type NumberBounds, positiveRatioBounds } from "../text/quantities.js";
import { marginBounds, waitBounds } from "./admission-blocks.js";

const increaseBounds: NumberBounds = { min: 0, max: 1_000, isMinExcluded: true };

const statisticRule = {
  charsMax: 16,
  forbidden: /\p{Cc}/u,
  expected: "mean, or a percentile such as p50 or p99",
};

const mean: RttStatistic = { kind: "mean" };

const statisticForm = text(statisticRule, /^(?:mean|p[0-9]{1,3}(?:\.[0-9]{1,3})?)$/);

const statistic = field(
  readBy<RttStatistic>(statisticForm, (reader, place) => {
    const written = reader.readText(place, statisticRule);
    if (written === undefined || written === "mean") return mean;
    const percentile = Number(/^p([0-9]{1,3}(?:\.[0-9]{1,3})?)$/.exec(written)?.[1] ?? 0);
    if (percentile > 0 && percentile <= 100) return { kind: "percentile", percentile };
    const message = "this is neither mean nor a percentile";
    const { expected } = statisticRule;
    return reader.report(place.key, { id: "HG133", message, expected });
  }),
  "The latency statistic that is used: mean, or a percentile such as p50.",
  { default: mean, writtenDefault: "mean" },
);

/** Documentation of each algorithm's field. */
export const lawDocs = "Settings of this law.";

const smoothingDocs = "The weight of a new sample.";

const aimd = object(
  {
    title: "aimd",
    docs:
      "Increases additively while the service is healthy, and decreases multiplicatively " +
      "otherwise.",
  },
  {
    increase: field(number(increaseBounds), "The increase.", { larger: "looser", default: 1 }),
    decrease: field(
      number({ min: 0, max: 0.999, isMinExcluded: true }),
      "The factor of a decrease.",
      { larger: "looser", as: "decreaseRatio", default: 0.5 },
    ),
  },
);

const vegas = object(
  { title: "vegas", docs: "Keeps the queue inside the service short." },
  {
    smoothing: field(number(positiveRatioBounds), smoothingDocs, {
      larger: "different",
      as: "smoothingRatio",
      default: 1,
    }),
    statistic,
  },
);

const gradient = object(
  { title: "gradient", docs: "Follows the latency relative to its baseline." },
  {
    rttTolerance: field(
      number({ min: 1, max: 100 }),
      "The acceptable ratio of latency to baseline.",
      {
        larger: "looser",
        default: 1.5,
      },
    ),
    smoothing: field(number(positiveRatioBounds), smoothingDocs, {
      larger: "different",
      as: "smoothingRatio",
      default: 0.2,
    }),
    baseline: field(words("minRtt", "drifting"), "The latency that is the baseline.", {
      default: "minRtt",
    }),
    statistic,
  },
);

const latencyShed = object(
  { title: "latencyShed", docs: "Refuses requests while the latency is above a threshold." },
  {
    threshold: field(duration(waitBounds), "The threshold of the latency.", {
      larger: "looser",
      as: "thresholdMs",
      needs: "a latency, such as 250ms",
    }),
    statistic,
    window: field(
      whole({ min: 1, max: latencyShedWindowCountMax }),
      "The number of requests in the sample.",
      { larger: "different", as: "windowCount", default: 100 },
    ),
    factor: field(number(increaseBounds), "How strongly requests are refused.", {
      larger: "stricter",
      default: 1,
    }),
    sustained: field(duration(marginBounds), "How long the latency must be above the threshold.", {
      larger: "looser",
      as: "sustainedMs",
      default: 1_000,
    }),
  },
  { data: ({ thresholdMs = 1_000, ...rest }) => ({ thresholdMs, ...rest }) },
);

/** Settings of the algorithms that have any, except `signal`, which has its own reader. */
export const lawFields = {
  aimd: lawField("aimd", aimd),
  vegas: lawField("vegas", vegas),
  gradient: lawField("gradient", gradient),
  latencyShed: lawField("latencyShed", latencyShed),
};

/** Algorithms that require settings, with the expected text for messages. */
export const neededLawFields: Readonly<Partial<Record<LawName, string>>> = {
  latencyShed: "latencyShed: {threshold: 250ms}",
  signal: "signal: {prometheus: ..., target: ..., critical: ...}",
};

function lawField<Law extends LawName, Data extends object>(law: Law, form: ObjectForm<Data>) {
  const map = inner(form);
  const settings = readBy(map, (reader, place) => {
    const read = map.read(reader, place);
    return read && { law, ...read };
  });
  return field(settings, lawDocs, { default: { law, ...form.defaults } });
}
