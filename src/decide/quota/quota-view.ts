import type { DescriptorEntry } from "../../core/limits/key.js";
import type { LimitKey } from "../../core/limits/limit.js";
import type { QuotaAssignment, QuotaLimit, QuotaPoolSettings } from "../../core/quota/quota.js";

/** The state of this replica's lease of a pool. */
export type QuotaLeaseState =
  /** The first claim has not been answered: nothing is assigned. */
  | "claiming"
  /** Assignments are made from the lease. */
  | "leased"
  /** Claims fail, and the last lease is still valid. */
  | "unrenewed"
  /** The last lease has ended: the limits' `on_store_failure` applies. */
  | "lost";

/** One bucket of one Envoy, as this replica knows it. */
export interface QuotaHolderView {
  /** The Envoy's name for itself (`x-headgate-node`), or its address. */
  readonly node: string;
  readonly weight: number;
  /**
   * The rate that it would use, admitted and denied, by its last report, in micro-hits per second.
   */
  readonly demandMicroHz: number;
  /** Its last assignment. Undefined before the first one. */
  readonly assignment: QuotaAssignment | undefined;
  /** The highest rate that may be active. */
  readonly heldMicroHz: number;
  /** Time since its last report, in milliseconds. */
  readonly ageMs: number;
  /** Whether its stream is closed. It counts until its assignment has ended. */
  readonly isLeft: boolean;
}

/** One pool, as this replica knows it: its limits and all buckets here that share them. */
export interface QuotaPoolView {
  /** The quotas that use the pool, at least one. */
  readonly quotas: readonly string[];
  readonly domain: string;
  /** The descriptor. Contains values of callers. */
  readonly entries: readonly DescriptorEntry[];
  /** The mode by its limits. After a lost lease, their `on_store_failure` applies instead. */
  readonly mode: QuotaPoolSettings["mode"];
  readonly limits: readonly QuotaLimit[];
  /** The used hits of each limit by the store's last response. Undefined if there was none. */
  readonly levelHits: readonly (number | undefined)[];
  readonly lease: {
    readonly state: QuotaLeaseState;
    readonly rateMicroHz: number;
    /** Time until the lease ends, in milliseconds; 0 if it has ended. */
    readonly leftMs: number;
  };
  readonly demandMicroHz: number;
  readonly heldMicroHz: number;
  readonly holderCount: number;
  /** The holders with the highest demand, at most `most` of them. Computed on each call. */
  holders(most: number): readonly QuotaHolderView[];
}

/** The current assignments of this replica, for display. Read-only, computed on each read. */
export interface QuotaView {
  pools(): Iterable<QuotaPoolView>;
  /**
   * The pool of a descriptor's keys, in the order of its limits. Undefined if it has no bucket
   * here.
   */
  poolOf(keys: readonly LimitKey[]): QuotaPoolView | undefined;
}
