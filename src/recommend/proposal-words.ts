import { formatTimestamp } from "../core/base/timestamp.js";
import { formatDuration } from "../policy/text/duration.js";
import type { CallerDemand, Quantiles } from "./demand.js";
import type { Proposal } from "./proposal.js";

/** Returns the name of a rule in reports. */
export function subjectOf({ domain, rule }: Pick<Proposal, "domain" | "rule">): string {
  return `${domain}/${rule}`;
}

/** Returns the text of a proposed limit: `20 per 1m, burst 30`. */
export function proposedText({ hits, burst, periodSeconds }: Proposal): string {
  return `${hits.value} per ${formatDuration(1_000 * periodSeconds)}, burst ${burst.value}`;
}

/** Returns the text of steps in reports: `steps of 60 s`. */
export function stepText(seconds: number): string {
  return `steps of ${seconds} s`;
}

/** Returns the hits of a caller in its busiest windows, without windows shorter than a step. */
export function busiestWindows({ busiest, steps }: CallerDemand): readonly [string, Quantiles][] {
  return Object.entries(busiest).filter(([window]) => {
    return (windowSeconds[window] ?? 0) >= (steps?.seconds ?? 0);
  });
}

const windowSeconds: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
};

/** Returns a sentence about what a replay or an estimate refuses. */
export function refusalText({ refusals, isShared, stepSeconds }: Proposal): string {
  const what =
    stepSeconds === undefined
      ? "A replay of the log refuses"
      : `Estimated from ${stepText(stepSeconds)}: it refuses`;
  const requests = `${what} ${percent(refusals.requestRatio)} of the requests`;
  if (isShared) return `${requests}.`;
  return (
    `${requests} (${percent(refusals.ordinaryRequestRatio)} without callers far above others), ` +
    `and something of ${percent(refusals.callerDayRatio)} of the callers on a day.`
  );
}

/** Returns a sentence about how well the fit predicts a day that it has not seen. */
export function heldOutText({ heldOut, isShared }: Proposal): string {
  if (heldOut === undefined) return "No day was held out: fewer than 3 days.";
  const { fittedDayCount, day, predictedRatio, actualRatio, needError } = heldOut;
  const fitted = `Fitted to ${fittedDayCount} days without headroom`;
  const needed = `needed ${errorText(needError)}`;
  if (isShared) return `${fitted}: ${dayText(day)} ${needed}.`;
  return (
    `${fitted}, it predicts ${percent(predictedRatio)} of callers refused on ${dayText(day)}; it ` +
    `was ${percent(actualRatio)}. That day ${needed}.`
  );
}

/** Returns a day since 1970 as `2026-01-12`. */
function dayText(day: number): string {
  return formatTimestamp(day * 86_400_000_000).slice(0, 10);
}

/** Returns the error of a prediction: `4 % more than predicted`. */
function errorText(ratio: number): string {
  const value = Math.round(100 * ratio);
  if (value === 0) return "what was predicted";
  return `${Math.abs(value)} % ${value < 0 ? "less" : "more"} than predicted`;
}

/** Returns a part as `0.31 %`, with two significant digits. */
export function percent(ratio: number): string {
  return `${Number((100 * ratio).toPrecision(2))} %`;
}
