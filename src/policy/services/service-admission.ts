import { isSeq } from "yaml";
import type { LoadSettings } from "../../core/admission/load.js";
import type { ProxyPolicy } from "../proxies/proxies.js";
import { readWords } from "../text/block.js";
import {
  any,
  duration,
  type FieldType,
  flag,
  list,
  number,
  readBy,
  whole,
  words,
} from "../text/form.js";
import { field, inner, innerOrOff, object, type ReadBlock, wordOr } from "../text/object.js";
import { permitBounds, positiveRatioBounds } from "../text/quantities.js";
import { headerName } from "../text/service-texts.js";
import {
  deadline,
  estimatedWait,
  gate,
  load,
  queue,
  reject,
  throttle,
  waitBounds,
} from "./admission-blocks.js";
import { shedAt, shedThresholds } from "./shed-thresholds.js";

/** Maximum number of keys that are counted at once. */
export const permitKeysMax = 1_000_000;

/** Blocks by their names in `dryRun`, in the order of the checks. */
const admissionBlocks = [
  "deadline",
  "gate",
  "throttle",
  "estimatedWait",
  "priority",
  "load",
  "permits",
  "queue",
  "rateLimit",
] as const;

/** One of the blocks that may decide and count without refusing. */
export type AdmissionBlock = (typeof admissionBlocks)[number];

/** What distinguishes callers. */
export type CallerKey =
  | { readonly kind: "remoteAddress" }
  | { readonly kind: "header"; readonly header: string };

/** Permits by caller, route or model. */
export interface KeyedPermits {
  /** `model`: as determined by `usage` of the service. */
  readonly per: CallerKey | { readonly kind: "route" } | { readonly kind: "model" };
  readonly max: number;
  /** Maximum keys counted at once; beyond it, new keys share one count. Default 10,000. */
  readonly keysMax: number;
  /**
   * Requests that count together: those of all replicas, or of each replica. Default fleet. Without
   * a shared store, each replica always counts alone.
   */
  readonly scope: "fleet" | "replica";
}

/** A header that distinguishes callers. */
export const headerKey = object(
  { title: "a caller", docs: "The value of a header." },
  {
    header: field(headerName, "The header's name, in lower case.", { needs: "a header's name" }),
  },
  {
    data: ({ header }): CallerKey | undefined =>
      header === undefined ? undefined : { kind: "header", header },
  },
);

const permitsPer = object(
  { title: "maxInFlightPer", docs: "Permits for each caller, route or model." },
  {
    per: field(
      wordOr(
        ["caller", "route", "model"],
        inner(headerKey),
        "caller, route, model or {header: x-tenant}",
      ),
      "What is counted separately. `model`: the model of a call, as `usage` finds it.",
      { default: "caller" },
    ),
    max: field(whole(permitBounds), "Maximum requests in flight of one caller.", {
      larger: "looser",
      needs: "the maximum requests in flight of one caller",
    }),
    keysMax: field(
      whole({ min: 1, max: permitKeysMax }),
      "Maximum number of callers counted separately.",
      { larger: "looser", default: 10_000 },
    ),
    scope: field(
      words("fleet", "replica"),
      "`fleet`: replicas count together in the shared store. `replica`: each counts for itself. " +
        "Without a shared store, each does.",
      { default: "fleet" },
    ),
  },
);

/** `true`: every block decides and counts, and refuses no request; or a list of such blocks. */
const dryRuns: FieldType<readonly AdmissionBlock[] | boolean> = readBy(
  any(flag, list(words(...admissionBlocks))),
  (reader, place) =>
    isSeq(reader.contentOf(place))
      ? readWords(reader, place, admissionBlocks)
      : flag.read(reader, place),
);

/** `admission` of a service. */
export const admission = object(
  {
    title: "an admission",
    docs: "Checks that a request must pass before the service. {} applies sound defaults.",
  },
  {
    maxInFlight: field(
      whole(permitBounds),
      "Maximum requests in flight, in the fleet. Default: a law learns the limit.",
      { larger: "looser" },
    ),
    maxInFlightPer: field(
      inner(permitsPer),
      "Permits for each caller, route or model. Default: no limit.",
    ),
    shedAt: field(
      shedAt,
      "The load from which each class is refused. Default: low 0.75, normal 0.9, " +
        "high 0.95. `eager` refuses low from 0.5.",
      { added: "stricter", default: "usual" },
    ),
    deadline: field(
      innerOrOff(deadline),
      "Refuses requests whose deadline leaves no time for a response.",
      {
        added: "stricter",
      },
    ),
    queue: field(
      inner(queue),
      "A queue for requests without a permit. Default: requests do not wait.",
    ),
    estimatedWait: field(
      inner(estimatedWait),
      "Refuses requests whose expected wait is too long. Default: off.",
      {
        added: "stricter",
      },
    ),
    gate: field(
      inner(gate),
      "Refuses new requests while many requests are refused. Default: off.",
      {
        added: "stricter",
      },
    ),
    throttle: field(
      inner(throttle),
      "Refuses requests in proportion to those that are refused anyway. Default: off.",
      {
        added: "stricter",
      },
    ),
    load: field(inner(load), "Additional sources of load. Default: none.", {
      added: "stricter",
    }),
    reject: field(inner(reject), "How requests are refused."),
    caller: field(
      wordOr(["remoteAddress"], inner(headerKey), "remoteAddress, or {header: x-user}"),
      "What identifies a caller.",
      { default: "remoteAddress" },
    ),
    lateAfter: field(
      duration(waitBounds),
      "A client that gives up after this time counts as served too late. Default: its deadline.",
      { larger: "different", as: "lateAfterMs" },
    ),
    sampleRatio: field(number(positiveRatioBounds), "The ratio of responses that are sampled.", {
      larger: "different",
      default: 1,
    }),
    ownOverload: field(
      words("allow", "refuse"),
      "While Headgate itself is overloaded: requests pass without a decision, or " +
        "all but critical ones are refused. Default: as " +
        "`proxies.headgate.failureModeDeny` sets it.",
    ),
    dryRun: field(
      dryRuns,
      "Decides and counts, but never refuses: for all blocks, or for those in a list.",
      { default: false },
    ),
  },
  {
    data(read) {
      const { dryRun } = read;
      const dry = new Set<AdmissionBlock>(
        typeof dryRun === "boolean" ? (dryRun ? admissionBlocks : []) : dryRun,
      );
      const part = <T extends { readonly dryRun: boolean }>(
        name: AdmissionBlock,
        said: T | undefined,
      ): Omit<T, "dryRun"> | undefined => {
        if (said === undefined) return undefined;
        const { dryRun: isDry, ...settings } = said;
        if (isDry) dry.add(name);
        return settings;
      };
      const filled: LoadSettings | undefined = part("load", read.load);
      const shed = shedThresholds(read.shedAt);
      if (shed.isDryRun) dry.add("priority");
      const caller = read.caller === "remoteAddress" ? { kind: read.caller } : read.caller;
      const { deadline: left = deadline.defaults } = read;
      return {
        ...read,
        maxInFlightPer: keyedPermits(read.maxInFlightPer, caller),
        shedAt: shed.thresholds,
        deadline: part("deadline", left === "off" ? undefined : left),
        queue: part("queue", read.queue),
        estimatedWait: part("estimatedWait", read.estimatedWait),
        gate: part("gate", read.gate),
        throttle: part("throttle", read.throttle),
        load: filled,
        reject: read.reject ?? reject.defaults,
        caller,
        dryRun: new Set(admissionBlocks.filter((block) => dry.has(block))),
      };
    },
  },
);

/** `admission` as it is written. The default of `ownOverload` comes from `proxies`. */
export type AdmissionDraft = typeof admission.defaults;

/** Checks before a service; each block is undefined if the policy leaves it out. */
export type AdmissionPolicy = AdmissionDraft & { readonly ownOverload: OwnOverloadMode };

/** Handling of requests while Headgate itself is overloaded. */
type OwnOverloadMode = NonNullable<AdmissionDraft["ownOverload"]>;

/** Admission of a service that has only a concurrency algorithm: permits, and no other check. */
export const permitsAlone: AdmissionPolicy = {
  maxInFlight: undefined,
  maxInFlightPer: undefined,
  shedAt: undefined,
  deadline: undefined,
  queue: undefined,
  estimatedWait: undefined,
  gate: undefined,
  throttle: undefined,
  load: undefined,
  reject: reject.defaults,
  caller: { kind: "remoteAddress" },
  lateAfterMs: undefined,
  sampleRatio: 1,
  ownOverload: "allow",
  dryRun: new Set(),
};

/** Completes a draft. By default, own overload is handled as if Headgate did not answer. */
export function finishAdmission(
  draft: AdmissionDraft,
  { headgate: { deniesWithoutAnswer } }: ProxyPolicy,
): AdmissionPolicy {
  return { ...draft, ownOverload: draft.ownOverload ?? (deniesWithoutAnswer ? "refuse" : "allow") };
}

/** Reads `{per: caller, max: 20}`. */
function keyedPermits(
  read: typeof permitsPer.defaults | undefined,
  caller: CallerKey,
): KeyedPermits | undefined {
  if (read?.max === undefined) return undefined;
  const { per, max, ...rest } = read;
  if (typeof per !== "string") return { per, max, ...rest };
  return { per: per === "caller" ? caller : { kind: per }, max, ...rest };
}

/** Settings beside `admission` that affect it. */
interface AdmissionContext {
  /** Whether the service's algorithm sets a limit that requests could wait for. */
  readonly isLimited: boolean;
  /** Whether the service's algorithm follows a signal. */
  readonly hasSignal: boolean;
  /** Whether the service's calls are measured. */
  readonly isMeasured: boolean;
}

/** Refuses blocks that have no effect without another block. */
export function refuseIdleBlocks(
  { block, data }: ReadBlock<AdmissionDraft>,
  { isLimited, hasSignal, isMeasured }: AdmissionContext,
): void {
  const hasLimit = isLimited || !block.isLeftOut("maxInFlight");
  const refuse = (name: string, why: string, expected: string): undefined =>
    block.report(name, { id: "HG207", message: `"${name}" ${why}`, expected });
  if (data.maxInFlightPer?.per.kind === "model" && !isMeasured) {
    refuse("maxInFlightPer", "counts by model, and nothing finds a call's model", "usage: {}");
  }
  const limit = "maxInFlight next to it, or a concurrency law that sets a limit";
  if (data.queue !== undefined && !hasLimit) {
    refuse("queue", "has no limit that requests could wait for", limit);
  }
  if (data.estimatedWait !== undefined && !hasLimit) {
    refuse("estimatedWait", "has no limit to estimate a wait from", limit);
  }
  const isWaitRight = data.estimatedWait !== undefined || block.isLeftOut("estimatedWait");
  if (data.gate !== undefined && isWaitRight && data.estimatedWait?.sigmoid === undefined) {
    const sigmoid = "estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}";
    refuse("gate", "has no reject probability to act on", sigmoid);
  }
  if (data.load !== undefined && data.shedAt === undefined) {
    refuse("load", "has no thresholds to compare with", "shedAt that is not off");
  }
  if (data.load?.signalReading !== undefined && !hasSignal) {
    const law = "concurrency: {law: signal} next to it";
    refuse("load", "refers to a reading, and no law follows a signal", law);
  }
}
