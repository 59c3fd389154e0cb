import { concurrencyDefaults } from "../../src/core/concurrency/concurrency-laws.js";
import type {
  ConcurrencySettings,
  LimitBounds,
} from "../../src/core/settings/admission-settings.js";
import type { LawScenario } from "./law-run.js";

/** Laws that find a limit by themselves, by the name that they have in tables. */
export const learningLaws = ["gradient", "vegas", "gradient2", "aimd", "window"] as const;

/** One of them. */
export type LearningLaw = (typeof learningLaws)[number];

/** A law by its defaults, with bounds of its own where they are given. */
export function lawOf(name: LearningLaw, bounds: Partial<LimitBounds> = {}): ConcurrencySettings {
  const limits = { ...concurrencyDefaults.limits, ...bounds };
  switch (name) {
    case "gradient":
      return { law: "gradient", limits, ...concurrencyDefaults.gradient };
    case "gradient2":
      return { law: "gradient", limits, ...concurrencyDefaults.gradient, baseline: "drifting" };
    case "vegas":
      return { law: "vegas", limits, ...concurrencyDefaults.vegas };
    case "aimd":
      return { law: "aimd", limits, ...concurrencyDefaults.aimd };
    case "window":
      return { law: "window", limits };
  }
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
