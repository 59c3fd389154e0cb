import { SpaceSaving } from "../core/collections/space-saving.js";
import type { AskedPart } from "../simulate/asked-service.js";
import type { Refusals } from "./proposal.js";
import type { FittedRule } from "./propose.js";

/** Maximum numbers of callers for each rule whose refusals are counted, and that are reported. */
const countedCallersMax = 1_000;
const namedCallersMax = 10;

/** Maximum number of pairs of a refused caller and a day that are distinguished, for each rule. */
const refusedDaysMax = 100_000;

const dayUs = 86_400_000_000;

interface RuleCounts {
  readonly outliers: ReadonlySet<string>;
  readonly callerDayCount: number;
  readonly callers: SpaceSaving<string>;
  /** Texts of refused outliers: at most as many as there are outliers. */
  readonly refusedOutliers: Set<string>;
  readonly refusedDays: Set<string>;
  requestCount: number;
  refusedCount: number;
  ordinaryRefusedCount: number;
}

/** Counts what a replay refuses, in total and for each caller. */
export class RefusalCounter {
  /** By the index of the rule, which does not change if the policy's numbers do. */
  readonly #rules: ReadonlyMap<number, RuleCounts>;

  constructor(fitted: readonly FittedRule[]) {
    this.#rules = new Map(
      fitted.map(({ rule, fit, callerDayCount }) => [
        rule.index,
        {
          outliers: fit.outliers,
          callerDayCount,
          callers: new SpaceSaving<string>(countedCallersMax),
          refusedOutliers: new Set<string>(),
          refusedDays: new Set<string>(),
          requestCount: 0,
          refusedCount: 0,
          ordinaryRefusedCount: 0,
        },
      ]),
    );
  }

  /** Takes a result of the replay; see `Replay`. */
  take({ shape, key, text }: AskedPart, isOver: boolean, timeUs: number): void {
    const counts = shape.rule && this.#rules.get(shape.rule.index);
    if (counts === undefined) return;
    counts.requestCount += 1;
    if (!isOver) return;
    counts.refusedCount += 1;
    counts.callers.add(text);
    if (counts.outliers.has(key)) counts.refusedOutliers.add(text);
    else counts.ordinaryRefusedCount += 1;
    if (counts.refusedDays.size < refusedDaysMax) {
      counts.refusedDays.add(`${Math.floor(timeUs / dayUs)} ${key}`);
    }
  }

  /** @param nameOf the name of a caller in reports, by its descriptor */
  of(ruleIndex: number, nameOf: (descriptor: string) => string): Refusals {
    const counts = this.#rules.get(ruleIndex);
    if (counts === undefined || counts.requestCount === 0) return noRefusals;
    const { requestCount, refusedCount, ordinaryRefusedCount, refusedDays } = counts;
    return {
      requestRatio: refusedCount / requestCount,
      ordinaryRequestRatio: ordinaryRefusedCount / requestCount,
      callerDayRatio: Math.min(1, refusedDays.size / counts.callerDayCount),
      callers: counts.callers.top(namedCallersMax).map(({ key, count, errorMax }) => ({
        name: nameOf(key),
        refusedCount: count - errorMax,
        isOutlier: counts.refusedOutliers.has(key),
      })),
    };
  }
}

const noRefusals: Refusals = {
  requestRatio: 0,
  ordinaryRequestRatio: 0,
  callerDayRatio: 0,
  callers: [],
};
