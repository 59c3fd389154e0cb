import {
  type ConcurrencySettings,
  concurrencyLaws,
  isLearning,
  type LawName,
  lawNames,
} from "../../src/core/concurrency/concurrency-laws.js";
import type { LimitBounds } from "../../src/core/concurrency/limit-bounds.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { policyOf } from "../support/service-texts.js";
import type { LawScenario } from "./law-run.js";

/** A law that finds a limit by itself, by the name that it has in tables. */
export type LearningLaw = LawName | "gradient2";

/** All of them. */
export const learningLaws: readonly LearningLaw[] = [
  ...lawNames.filter((law) => isLearning(law) && concurrencyLaws[law].bounds !== "nothing"),
  "gradient2",
];

/** A law by its defaults, with bounds of its own where they are given. */
export function lawOf(name: LearningLaw, bounds: Partial<LimitBounds> = {}): ConcurrencySettings {
  const concurrency = name === "gradient2" ? "{gradient: {baseline: drifting}}" : `{law: ${name}}`;
  const settings = concurrencyOf(concurrency);
  return { ...settings, limits: { ...settings.limits, ...bounds } };
}

/** What a policy makes of a service's `concurrency`. */
export function concurrencyOf(text: string): ConcurrencySettings {
  const service = `{name: a, concurrency: ${text}}`;
  const parsed = parsePolicy([{ file: "a.yaml", text: policyOf(service) }]);
  const settings =
    parsed.kind === "problems" ? undefined : parsed.services[0]?.concurrency?.settings;
  if (settings === undefined) throw new Error(`not a law: ${text}`);
  return settings;
}

/**
 * Ten servers of 50 ms in the mean at three times their capacity, and clients who wait for a
 * second: what the others vary.
 */
export function overload(law: ConcurrencySettings, change: Partial<LawScenario> = {}): LawScenario {
  return {
    law,
    serverCount: 10,
    serviceMs: 50,
    service: "exponential",
    arrivals: "poisson",
    loadRatio: 3,
    patienceMs: 1_000,
    afterLeaving: "stops",
    changes: [],
    ...change,
  };
}

/** Halves the capacity for some time, by servers that go or by a release that is slower. */
export function halved(by: "servers" | "service", span: HalvedSpan): LawScenario["changes"] {
  const whole = { serverCount: 10, serviceMs: 50 };
  const half = by === "servers" ? { ...whole, serverCount: 5 } : { ...whole, serviceMs: 100 };
  return [
    { atMs: span.fromMs, ...half },
    { atMs: span.toMs, ...whole },
  ];
}

/** When capacity is halved. */
export interface HalvedSpan {
  readonly fromMs: number;
  readonly toMs: number;
}
