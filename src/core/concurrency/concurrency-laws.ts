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

/** What those who use a law have to know of it. */
interface LawTraits {
  /**
   * What moves its limit. `requests`: single ones; `windows`: single ones, or many that Envoys have
   * added up; `readings`: of something else.
   */
  readonly learnsFrom: "nothing" | "readings" | "requests" | "windows";
  /** What its limit bounds; `queue`: the places of the queue where there is one, else permits. */
  readonly bounds: "permits" | "queue" | "nothing";
  /** Whether failures that were answered are drops: it has no other sign of overload. */
  readonly countsFailures: boolean;
}

/** Every concurrency law, by the name that policies have for it; a new one is a new entry. */
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

/** The name of a concurrency law. */
export type LawName = keyof typeof concurrencyLaws;

/** Every one of them. */
export const lawNames: readonly LawName[] = keysOf(concurrencyLaws);

/** A concurrency law and its settings; defaults and sources stand beside each law. */
export type ConcurrencySettings = {
  readonly [Law in LawName]: { readonly law: Law } & Parameters<
    (typeof concurrencyLaws)[Law]["create"]
  >[0];
}[LawName];

/** What every law is given. */
interface Bounded {
  readonly limits: LimitBounds;
}

/** Whether a law learns from requests how much a service can take; the others are told it. */
export function isLearning(law: LawName): boolean {
  const { learnsFrom }: LawTraits = concurrencyLaws[law];
  return learnsFrom === "requests" || learnsFrom === "windows";
}

/** Whether a law that does not learn is told something else in each replica. */
export function isOfReplica(settings: ConcurrencySettings | undefined): boolean {
  return settings?.law === "signal" && settings.isOfReplica === true;
}

/**
 * A law as its settings say. Settings are taken as they are: `src/policy` refuses impossible ones.
 *
 * @param known what it begins with where it goes by a baseline. Default: nothing is known yet
 */
export function createConcurrencyLimit(
  settings: ConcurrencySettings,
  known?: KnownBaseline,
): ConcurrencyLimit {
  const law: CreatesLimit = concurrencyLaws[settings.law];
  return law.create(settings, known);
}

/** A method, since a law takes its own settings only. */
interface CreatesLimit {
  create(settings: ConcurrencySettings, known: KnownBaseline | undefined): ConcurrencyLimit;
}

function begun(law: BaselineLimit, known: KnownBaseline | undefined): ConcurrencyLimit {
  return known === undefined ? law : law.begin(known);
}
