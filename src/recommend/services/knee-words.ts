import { type KneeVerdict, type LatencyFit, levelCountMin } from "./knee-fit.js";
import { pointSamplesMin } from "./latency-curve.js";
import type { ServiceObservations } from "./service-observations.js";

const models: Readonly<Record<LatencyFit["model"], string>> = {
  twoSegments: "two segments (asymptotic bounds of operational analysis)",
  usl: "Universal Scalability Law",
};

/** Returns sentences about what the curve shows. */
export function kneeReasons(verdict: KneeVerdict): readonly string[] {
  if (verdict.kind !== "seen") return [];
  const { model, knee, kneeMin, kneeMax, perSecondMax, baseMs, residualRatio } = verdict.fit;
  const range = `plausible: ${kneeRange(kneeMin, kneeMax)}`;
  return [
    `Latency rises from ${rounded(knee)} requests in flight on (${range}). More of them do not ` +
      `raise the throughput of ${rounded(perSecondMax)} per second.`,
    `Curve: ${models[model]}; ${rounded(baseMs)} ms alone; typical distance of the measured ` +
      `latencies ${percent(residualRatio)}.`,
    "`admission: {}` is enough for most services: it learns this limit, and follows the service " +
      "when it changes. A fixed maxInFlight is useful for a pool of known size, for the first " +
      "seconds after a start, and as a figure to compare the learned limit with.",
  ];
}

/** Returns why there is no limit and how much more data it takes; nothing if a knee was seen. */
export function kneeMissing(
  verdict: KneeVerdict,
  { inFlightMax, perSecondMax, limit, requestCount }: ServiceObservations,
): readonly string[] {
  const enough = "`admission: {}` needs no number: it learns the limit.";
  switch (verdict.kind) {
    case "seen":
      return [];
    case "few":
      return [
        `Latency is known at ${count(verdict.levelCount, "number")} of requests in flight (from ` +
          `${count(requestCount, "request")}); a curve needs ${levelCountMin} with ` +
          `${pointSamplesMin} samples each. Observe for longer, with quiet times and a peak.`,
        enough,
      ];
    case "below": {
      const most = rounded(Math.max(verdict.levelMax, inFlightMax));
      const part = limit === undefined ? undefined : inFlightMax / limit;
      const ofLimit = part === undefined ? "" : `, ${percent(part)} of the limit of ${limit}`;
      return [
        `The load never came near the knee: at most ${most} requests were in flight${ofLimit}, ` +
          `with ${rise(verdict.riseRatio)}, and throughput still grew. A limit above ${most} ` +
          "cannot be known from this.",
        "Observe a time in which more requests in flight only get slower: a higher peak, or a " +
          `load test from ${rounded(perSecondMax)} to ${rounded(2 * perSecondMax)} requests ` +
          "per second, and further if latency does not rise.",
        enough,
      ];
    }
    case "saturated":
      return [
        `The service was full all the time: throughput is ${rounded(verdict.perSecond)} per ` +
          `second with ${rounded(verdict.levelMin)} requests in flight and with more. The knee ` +
          "is below that. Observe a quiet time as well, such as a night.",
        enough,
      ];
    case "scattered":
      return [
        `Latency does not follow the load: it is ${percent(verdict.residualRatio)} from the best ` +
          "curve. Releases, incidents and requests of very different kinds look like this. " +
          "Choose a quieter time, or make a service of each kind of request.",
        enough,
      ];
  }
}

function rise(ratio: number): string {
  return ratio <= 1.1 ? "no higher latency than with few" : `${ratio.toFixed(1)} times the latency`;
}

function percent(ratio: number): string {
  return `${Math.round(100 * ratio)} %`;
}

function count(amount: number, noun: string): string {
  return `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
}

/** Returns whole numbers of requests around plausible knees: `19 to 22`. */
export function kneeRange(kneeMin: number, kneeMax: number): string {
  return `${rounded(Math.floor(kneeMin))} to ${rounded(Math.ceil(kneeMax))}`;
}

/** Rounds to three digits. Example: 1,234.5 is `1,230`. */
export function rounded(value: number): string {
  const digits = Number(value.toPrecision(3));
  return digits.toLocaleString("en", { maximumFractionDigits: 2 });
}
