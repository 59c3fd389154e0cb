import { keysOf } from "../base/key-of.js";
import { AimdLimit, type AimdSettings } from "./aimd-limit.js";
import type { BaselineLimit, KnownBaseline } from "./baseline-limit.js";
import type { ConcurrencyLimit } from "./concurrency-limit.js";
import { DriftingGradientLimit } from "./drifting-gradient-limit.js";
import { FixedLimit } from "./fixed-limit.js";
import { GradientLimit, type GradientSettings } from "./gradient-limit.js";
import { KneeLimit } from "./knee-limit.js";
import { LatencyShed, type LatencyShedSettings } from "./latency-shed.js";
import type { LimitBounds } from "./limit-bounds.js";
import { SignalLimit, type SignalSettings } from "./signal-limit.js";
import { VegasLimit, type VegasSettings } from "./vegas-limit.js";
import { WindowLimit } from "./window-limit.js";

/** What the users of an algorithm have to know about it. */
interface LawTraits {
  /**
   * What changes its limit. `requests`: single requests; `windows`: single requests, or combined
   * reports of Envoys; `readings`: those of a signal.
   */
  readonly learnsFrom: "nothing" | "readings" | "requests" | "windows";
  /** What its limit bounds. `queue`: the places in the queue if there is one, else permits. */
  readonly bounds: "permits" | "queue" | "nothing";
  /** Whether failed responses count as drops, since it has no other sign of overload. */
  readonly countsFailures: boolean;
}

/** All concurrency algorithms, by their names in policies. A new one is a new entry. */
export const concurrencyLaws = {
  fixed: {
    learnsFrom: "nothing",
    bounds: "permits",
    countsFailures: false,
    create: ({ limits }: Bounded) => new FixedLimit(limits),
  },
  aimd: {
    learnsFrom: "windows",
    bounds: "permits",
    countsFailures: true,
    create: (settings: AimdSettings & Bounded) => new AimdLimit(settings, settings.limits),
  },
  vegas: {
    learnsFrom: "windows",
    bounds: "permits",
    countsFailures: false,
    create: (settings: VegasSettings & Bounded, known?: KnownBaseline) =>
      begun(new VegasLimit(settings, settings.limits), known),
  },
  gradient: {
    learnsFrom: "windows",
    bounds: "permits",
    countsFailures: false,
    create: (settings: GradientSettings & Bounded, known?: KnownBaseline) =>
      settings.baseline === "drifting"
        ? new DriftingGradientLimit(settings, settings.limits)
        : begun(new GradientLimit(settings, settings.limits), known),
  },
  knee: {
    learnsFrom: "requests",
    bounds: "permits",
    countsFailures: false,
    create: ({ limits }: Bounded) => new KneeLimit(limits),
  },
  latencyShed: {
    learnsFrom: "windows",
    bounds: "nothing",
    countsFailures: false,
    create: (settings: LatencyShedSettings & Bounded) => new LatencyShed(settings, settings.limits),
  },
  window: {
    learnsFrom: "windows",
    bounds: "queue",
    countsFailures: true,
    create: ({ limits }: Bounded) => new WindowLimit(limits),
  },
  signal: {
    learnsFrom: "readings",
    bounds: "permits",
    countsFailures: false,
    create: (settings: SignalSettings & Bounded) => new SignalLimit(settings, settings.limits),
  },
} as const satisfies Readonly<Record<string, LawTraits & { readonly create: unknown }>>;

/** The name of a concurrency algorithm, as in policies. */
export type LawName = keyof typeof concurrencyLaws;

/** All names of concurrency algorithms. */
export const lawNames: readonly LawName[] = keysOf(concurrencyLaws);

/** An algorithm and its settings. Defaults and sources are documented with each algorithm. */
export type ConcurrencySettings = {
  readonly [Law in LawName]: { readonly law: Law } & Parameters<
    (typeof concurrencyLaws)[Law]["create"]
  >[0];
}[LawName];

/** Settings that every algorithm has. */
interface Bounded {
  readonly limits: LimitBounds;
}

/** Reports whether an algorithm learns the capacity from requests. The others are told it. */
export function isLearning(law: LawName): boolean {
  const { learnsFrom }: LawTraits = concurrencyLaws[law];
  return learnsFrom === "requests" || learnsFrom === "windows";
}

/** Reports whether each replica has its own reading, as the algorithm `signal` allows. */
export function isOfReplica(settings: ConcurrencySettings | undefined): boolean {
  return settings?.law === "signal" && settings.isOfReplica === true;
}

/**
 * Creates an algorithm. Settings are not validated here: `src/policy` refuses invalid ones.
 *
 * @param known initial baseline, for algorithms that use one. Default: not known yet
 */
export function createConcurrencyLimit(
  settings: ConcurrencySettings,
  known?: KnownBaseline,
): ConcurrencyLimit {
  const law: CreatesLimit = concurrencyLaws[settings.law];
  return law.create(settings, known);
}

/** Declared as a method, since each algorithm takes only its own settings. */
interface CreatesLimit {
  create(settings: ConcurrencySettings, known: KnownBaseline | undefined): ConcurrencyLimit;
}

function begun(law: BaselineLimit, known: KnownBaseline | undefined): ConcurrencyLimit {
  return known === undefined ? law : law.begin(known);
}
