import type { LoadAnswer } from "./open-loop-load.js";

/** What a load came to, between two times of it. */
export interface LoadSummary {
  readonly requestCount: number;
  /** Served within the deadline, as a share of what the upstream can serve: 0 to 1 and a little. */
  readonly goodputRatio: number;
  /**
   * The part of the workers' time that went into answers within the deadline, 0 to 1: what chance
   * makes of service times is not in it.
   */
  readonly workedRatio: number;
  /** Of those that were served: their latency. */
  readonly servedP50Ms: number;
  readonly servedP99Ms: number;
  /** Served within the deadline, as a share of those that came, by class. */
  readonly servedRatioByClass: ReadonlyMap<string, number>;
  /** Answers of 400 and above. */
  readonly refusedCount: number;
  /** Statuses of those that do not say when to come back. */
  readonly withoutRetryAfter: readonly number[];
  /** Of those that did not wait for it. */
  readonly refusedP99Ms: number;
  /** No answer within the deadline. */
  readonly unansweredCount: number;
  /** Requests that the machine let leave late, as a share of all: how little it says of others. */
  readonly lateRatio: number;
}

/** A request is due when it is due: one that leaves so much later was kept by the machine. */
const lateMsMin = 20;

/** A part of a load, and what could be served in it. */
export interface LoadSpan {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly capacityPerSecond: number;
  /** Requests that the upstream works on at once. */
  readonly workerCount: number;
}

/** Sums a load up. The deadline is the client's: what came later came as unanswered. */
export function summarizeLoad(answers: readonly LoadAnswer[], span: LoadSpan): LoadSummary {
  const { fromMs, untilMs, capacityPerSecond } = span;
  const counted = answers.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs);
  const served = counted.filter(({ status }) => status >= 200 && status < 400);
  const refused = counted.filter(({ status }) => status >= 400);
  const classes = new Map<string, { came: number; served: number }>();
  for (const { name, status } of counted) {
    const one = classes.get(name) ?? { came: 0, served: 0 };
    one.came += 1;
    if (status >= 200 && status < 400) one.served += 1;
    classes.set(name, one);
  }
  const servedMs = served.map(({ latencyMs }) => latencyMs);
  return {
    requestCount: counted.length,
    goodputRatio: served.length / (((untilMs - fromMs) / 1_000) * capacityPerSecond),
    workedRatio: workedMs(answers, span) / ((untilMs - fromMs) * span.workerCount),
    servedP50Ms: percentile(servedMs, 0.5),
    servedP99Ms: percentile(servedMs, 0.99),
    servedRatioByClass: new Map(
      [...classes].map(([name, one]) => [name, one.served / one.came] as const),
    ),
    refusedCount: refused.length,
    withoutRetryAfter: refused.filter(({ retryAfter }) => !retryAfter).map((one) => one.status),
    refusedP99Ms: percentile(
      refused.filter(({ hasWaited }) => !hasWaited).map(({ latencyMs }) => latencyMs),
      0.99,
    ),
    unansweredCount: counted.filter(({ status }) => status === 0).length,
    lateRatio: counted.filter(({ lateMs }) => lateMs > lateMsMin).length / counted.length,
  };
}

/** What workers did within a span, for answers whenever they were due. */
function workedMs(
  answers: readonly LoadAnswer[],
  { fromMs, untilMs }: Pick<LoadSpan, "fromMs" | "untilMs">,
): number {
  let sumMs = 0;
  for (const { atMs, latencyMs, workMs, status } of answers) {
    if (status < 200 || status >= 400) continue;
    const endMs = atMs + latencyMs;
    sumMs += Math.max(0, Math.min(endMs, untilMs) - Math.max(endMs - workMs, fromMs));
  }
  return sumMs;
}

/** The smallest value that this part of all does not exceed; NaN of none. */
function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

/** Requests a second of what `counts` picks, in steps of `stepMs`, by when they were due. */
export function ratesOver(
  answers: readonly LoadAnswer[],
  { stepMs, untilMs }: { readonly stepMs: number; readonly untilMs: number },
  counts: (answer: LoadAnswer) => boolean,
): readonly (readonly [number, number])[] {
  const bins = new Array<number>(Math.ceil(untilMs / stepMs)).fill(0);
  for (const answer of answers) {
    const bin = Math.floor(answer.atMs / stepMs);
    if (bin < bins.length && counts(answer)) bins[bin] = (bins[bin] ?? 0) + 1;
  }
  return bins.map((count, i) => [((i + 0.5) * stepMs) / 1_000, (count * 1_000) / stepMs]);
}
