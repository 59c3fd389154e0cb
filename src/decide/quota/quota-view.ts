import type { DescriptorEntry } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";
import type { QuotaAssignment, QuotaLimit, QuotaPoolSettings } from "../../core/quota/quota.js";

/** How this replica stands to a pool's lease. */
export type QuotaLeaseState =
  /** Nobody has answered its first claim yet: nothing is handed out. */
  | "claiming"
  /** It hands out of its lease. */
  | "leased"
  /** Claims fail, and the last lease holds still. */
  | "unrenewed"
  /** The last lease is over: its limits' `on_store_failure` decides. */
  | "lost";

/** One bucket of one Envoy, as this replica knows it. */
export interface QuotaHolderView {
  /** What the Envoy calls itself (`x-headgate-node`), else its address. */
  readonly node: string;
  readonly weight: number;
  /** What it would use: admitted and denied, by its last report. Micro-hits a second. */
  readonly demandMicroHz: number;
  /** What it was told last; undefined: nothing yet. */
  readonly assignment: QuotaAssignment | undefined;
  /** The most that it may have in force now. */
  readonly heldMicroHz: number;
  /** Since its last report, in milliseconds. */
  readonly ageMs: number;
  /** Whether its stream is closed: it counts until its assignment is over. */
  readonly isLeft: boolean;
}

/** One pool, as this replica knows it: limits, and all buckets here that reach them. */
export interface QuotaPoolView {
  /** The quotas that lead here, at least one. */
  readonly quotas: readonly string[];
  readonly domain: string;
  /** The descriptor; callers' values are in it. */
  readonly entries: readonly DescriptorEntry[];
  /** As its limits say; with a lost lease their `on_store_failure` holds in place of it. */
  readonly mode: QuotaPoolSettings["mode"];
  readonly limits: readonly QuotaLimit[];
  /** What is used of each limit, in hits, as the store said last; undefined: it said nothing. */
  readonly levelHits: readonly (number | undefined)[];
  readonly lease: {
    readonly state: QuotaLeaseState;
    readonly rateMicroHz: number;
    /** Until it is over, in milliseconds; 0: it is. */
    readonly leftMs: number;
  };
  readonly demandMicroHz: number;
  readonly heldMicroHz: number;
  readonly holderCount: number;
  /** Those with the most demand first; made when asked for, at most `most` of them. */
  holders(most: number): readonly QuotaHolderView[];
}

/** What is handed out here, for people: read only, and made as it is read. */
export interface QuotaView {
  pools(): Iterable<QuotaPoolView>;
  /** The pool of a descriptor's keys, in the order of its limits; undefined: no bucket is there. */
  poolOf(keys: readonly LimitKey[]): QuotaPoolView | undefined;
}
