import type { Rule } from "../../core/limits/limit.js";
import { percent, subjectOf } from "../../recommend/proposal-words.js";
import type { NotEnoughData } from "../../recommend/recommendation.js";
import { isShared, namesCallers, type ObservedRule } from "../../recommend/rule-observer.js";
import { rounded } from "../../recommend/services/knee-words.js";
import {
  type QueryRange,
  type RangeSeries,
  type VectorSample,
  vectorSeriesMax,
} from "../../recommend/services/prometheus-answers.js";
import { StepReader } from "../../recommend/step-reader.js";
import {
  callerCountQuery,
  type PrometheusPlan,
  ruleHitsQuery,
  ruleRatesQuery,
  unnamedHitsQuery,
} from "./prometheus-queries.js";

/** Maximum number of values of all callers in one request: 0.6 MB. */
const answerValuesMax = 20_000;

/** Server for the queries about rules. */
export interface RuleServer {
  matrix(name: string, query: string, range: QueryRange): Promise<readonly RangeSeries[]>;
  vector(name: string, query: string): Promise<readonly VectorSample[]>;
  /** Returns the maximum value; undefined if there is none. */
  peak(name: string, query: string): Promise<number | undefined>;
}

/** Returns which hits of a rule Prometheus has; undefined: only those of all callers together. */
export function hitsOf(rule: Rule): "hits" | "callerHits" | undefined {
  if (isShared(rule)) return "hits";
  return namesCallers(rule) ? "callerHits" : undefined;
}

/** Reads the hits of rules in each step, for rules whose hits can be assigned to buckets. */
export async function observeRules(
  rules: readonly Rule[],
  call: {
    readonly server: RuleServer;
    readonly plan: PrometheusPlan;
    readonly range: QueryRange;
  },
): Promise<{ readonly rules: readonly ObservedRule[]; readonly notEnough: NotEnoughData[] }> {
  const { server, plan } = call;
  const reader = new StepReader();
  for (const rule of rules) {
    const name = hitsOf(rule);
    if (name !== undefined) await readHits(reader, rule, { ...call, name });
  }
  const observed = reader.finish();
  const rates = rules.length === 0 ? [] : await server.vector("rules", ruleRatesQuery(plan.times));
  const notEnough = rules.flatMap((rule): readonly NotEnoughData[] => {
    if (observed.some((one) => one.rule === rule)) return [];
    const subject = subjectOf({ domain: rule.domain, rule: rule.label });
    if (hitsOf(rule) !== undefined) {
      return [{ subject, missing: [unknownHits(plan)] }];
    }
    const rate = rates.find(({ labels }) => {
      return labels.get("domain") === rule.domain && labels.get("rule") === rule.label;
    });
    return rate === undefined ? [] : [{ subject, missing: [unknownCallers(rate.value)] }];
  });
  return { rules: observed, notEnough };
}

function unknownHits({ times }: PrometheusPlan): string {
  const most = vectorSeriesMax.toLocaleString("en");
  return `Prometheus has no hits of it in ${times.range}, or more than ${most} callers`;
}

function unknownCallers(perSecond: number): string {
  return (
    `Prometheus knows the rate of all callers together: ${rounded(perSecond)} hits per second at ` +
    "most. A limit for each caller needs an access log, or `detailed_metric: true` on the rule " +
    "and a day of metrics"
  );
}

async function readHits(
  reader: StepReader,
  rule: Rule,
  call: {
    readonly server: RuleServer;
    readonly plan: PrometheusPlan;
    readonly range: QueryRange;
    readonly name: "hits" | "callerHits";
  },
): Promise<void> {
  const { server, plan, range, name } = call;
  const { startMs, endMs, stepMs } = range;
  const query = ruleHitsQuery(rule, name, plan);
  const notes: string[] = [];
  reader.add(rule, { seconds: stepMs / 1_000, notes });
  let named = 0;
  const counted = name === "hits" ? 1 : await server.peak(name, callerCountQuery(rule, plan));
  const callerCount = counted ?? 1;
  if (callerCount > vectorSeriesMax) return;
  const partMs = stepMs * Math.floor(answerValuesMax / callerCount);
  // A value belongs to the step that ends at its time.
  for (let fromMs = startMs + stepMs; fromMs <= endMs; fromMs += partMs) {
    const part = { startMs: fromMs, endMs: Math.min(endMs, fromMs + partMs - stepMs), stepMs };
    for (const [caller, values] of byCaller(await server.matrix(name, query, part))) {
      for (const [i, hits] of values.entries()) {
        reader.take(rule, { caller, startMs: fromMs + (i - 1) * stepMs, hits });
        named += hits;
      }
    }
  }
  notes.push("Prometheus misses what came before the first sample of a series.");
  if (name === "hits") return;
  const unnamed = (await server.peak("hits", unnamedHitsQuery(rule, plan.times))) ?? 0;
  if (unnamed < 1) return;
  notes.push(
    `${percent(unnamed / (unnamed + named))} of the hits are of callers without a series, ` +
      "because a replica names at most 1,000. The limit is not fitted to them.",
  );
}

/** Sums hits by caller and step. A user's query may return several series for one caller. */
function byCaller(series: readonly RangeSeries[]): ReadonlyMap<string, readonly number[]> {
  const callers = new Map<string, readonly number[]>();
  for (const { labels, values } of series) {
    const caller = labels.get("path") ?? "";
    const known = callers.get(caller) ?? [];
    const sums = values.map((value, i) => (known[i] ?? 0) + Math.max(0, Math.round(value) || 0));
    callers.set(caller, sums);
  }
  return callers;
}
