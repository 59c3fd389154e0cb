import { isMap } from "yaml";
import { any, duration, list, map, number, readBy } from "../text/form.js";
import { field, inner, innerBy, items, object } from "../text/object.js";
import { anyTime, scenarioFile, scenarioMsMax, someTime } from "./scenario-times.js";

/** Maximum number of requests a second of one caller. */
const callerPerSecondMax = 1_000_000;

/** Maximum number of steps of one rate. */
const rateStepsMax = 1_000;

/** A time and its rate; between two points, the rate changes evenly. */
export interface RatePoint {
  readonly atMs: number;
  readonly perSecond: number;
}

/** Requests a second over time. */
export type ScenarioRate =
  /** @property periodMs time after which the points repeat; undefined: the last rate stays */
  | {
      readonly kind: "points";
      readonly points: readonly RatePoint[];
      readonly periodMs: number | undefined;
    }
  /** A file with one rate a line, each for `stepMs`. */
  | { readonly kind: "trace"; readonly file: string; readonly stepMs: number };

const perSecond = number({ min: 0, max: callerPerSecondMax });

function once(points: readonly RatePoint[]): ScenarioRate {
  return { kind: "points", points, periodMs: undefined };
}

const ramp = object(
  { title: "a ramp", docs: "A rate that changes evenly from one value to another." },
  {
    from: field(perSecond, "Requests per second before.", { needs: "requests per second" }),
    to: field(perSecond, "Requests per second after.", { needs: "requests per second" }),
    start: field(anyTime, "When it starts to change.", { default: 0 }),
    end: field(someTime, "When it has changed.", { needs: "a duration from the start" }),
  },
  {
    data: ({ from = 0, to = 0, start, end = start }) =>
      once([
        { atMs: start, perSecond: from },
        { atMs: Math.max(start, end), perSecond: to },
      ]),
    check(block, _, { start, end = start }) {
      if (end >= start) return;
      block.refuseOrder(["end"], '"end" is before "start"', "an end after the start");
    },
  },
);

const daily = object(
  { title: "a daily curve", docs: "A rate that follows a cosine, such as that of a day." },
  {
    low: field(perSecond, "The lowest rate.", { needs: "requests per second" }),
    high: field(perSecond, "The highest rate.", { needs: "requests per second" }),
    period: field(duration({ minMs: 1_000, maxMs: scenarioMsMax }), "How long a day lasts.", {
      default: scenarioMsMax,
    }),
    peak: field(anyTime, "When the rate is highest, from the start. Default: half of the period."),
  },
  {
    data({ low = 0, high = 0, period, peak = period / 2 }): ScenarioRate {
      const pieces = 96;
      const points = Array.from({ length: pieces + 1 }, (_, i) => {
        const atMs = (i * period) / pieces;
        const height = (1 + Math.cos((2 * Math.PI * (atMs - peak)) / period)) / 2;
        return { atMs, perSecond: low + (high - low) * height };
      });
      return { kind: "points", points, periodMs: period };
    },
  },
);

const flash = object(
  { title: "a flash crowd", docs: "A rate that rises to a peak, stays there, and falls again." },
  {
    base: field(perSecond, "The rate before and after.", { needs: "requests per second" }),
    peak: field(perSecond, "The rate at the peak.", { needs: "requests per second" }),
    at: field(anyTime, "When it starts to rise.", { needs: "a duration from the start" }),
    rise: field(anyTime, "How long it rises.", { default: 0 }),
    hold: field(someTime, "How long the peak lasts.", { needs: "a duration" }),
    fall: field(anyTime, "How long it falls.", { default: 0 }),
  },
  {
    data({ base = 0, peak = 0, at = 0, rise, hold = 0, fall }) {
      const fallMs = at + rise + hold;
      return once([
        { atMs: at, perSecond: base },
        { atMs: at + rise, perSecond: peak },
        { atMs: fallMs, perSecond: peak },
        { atMs: fallMs + fall, perSecond: base },
      ]);
    },
  },
);

const step = object(
  { title: "a step", docs: "A rate from some time on." },
  {
    at: field(anyTime, "When it starts.", { needs: "a duration from the start" }),
    rate: field(perSecond, "Requests per second from then on.", { needs: "requests per second" }),
  },
  { data: ({ at = 0, rate = 0 }): RatePoint => ({ atMs: at, perSecond: rate }) },
);

const stepItem = innerBy(step, (block) => step.read(block), "a step: {at: 30s, rate: 500}");

const steps = readBy<ScenarioRate>(list(map(step), rateStepsMax, 1), (reader, place) => {
  const expected = "a list of steps: [{at: 0s, rate: 100}, {at: 30s, rate: 500}]";
  const read = items(stepItem, { expected, max: rateStepsMax }).read(reader, place);
  if (read === undefined) return undefined;
  if (read.length === 0) {
    return reader.report(place.key, { id: "HG125", message: "the list is empty", expected });
  }
  const isSorted = read.every(({ atMs }, i) => atMs >= (read[i - 1]?.atMs ?? 0));
  if (!isSorted) {
    const message = "the steps are not in the order of their times";
    return reader.report(place.key, { id: "HG240", message, expected });
  }
  return once(
    read.flatMap((point, i) => {
      const before = read[i - 1]?.perSecond ?? 0;
      return [{ atMs: point.atMs, perSecond: before }, point];
    }),
  );
});

const trace = object(
  { title: "a trace of rates", docs: "Rates from a file with one rate on each line." },
  {
    file: field(scenarioFile, "The file.", { needs: "a file" }),
    step: field(someTime, "How long each rate lasts.", { default: 1_000 }),
  },
  {
    data: ({ file, step: stepMs }): ScenarioRate | undefined =>
      file === undefined ? undefined : { kind: "trace", file, stepMs },
  },
);

const kinds = ["ramp", "daily", "flash", "steps", "trace"] as const;

const rateMap = object(
  { title: "a rate", docs: "A rate over time.", exclusive: [kinds], needed: [kinds] },
  {
    ramp: field(inner(ramp), "Changes evenly."),
    daily: field(inner(daily), "Follows a daily curve."),
    flash: field(inner(flash), "Rises to a peak and falls again."),
    steps: field(steps, "Changes at once, at some times."),
    trace: field(inner(trace), "Follows a file."),
  },
  {
    data: ({ ramp: a, daily: b, flash: c, steps: d, trace: e }) => a ?? b ?? c ?? d ?? e,
    check(block) {
      if (kinds.some((kind) => !block.isLeftOut(kind))) return;
      const message = "the rate has no kind";
      block.report("", { id: "HG125", message, expected: `one of ${kinds.join(", ")}` });
    },
  },
);

const rateInner = inner(rateMap);

/** Requests a second: a number, or a map that says how it changes. */
export const scenarioRate = readBy<ScenarioRate>(any(perSecond, rateInner), (reader, place) => {
  if (isMap(reader.contentOf(place))) return rateInner.read(reader, place);
  const rate = perSecond.read(reader, place);
  return rate === undefined ? undefined : once([{ atMs: 0, perSecond: rate }]);
});
