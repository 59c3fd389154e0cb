import type { Clock, Random } from "../../core/base/clock.js";
import type { ErrorCode } from "../../core/base/errors.js";
import type { GlobalDemand, RegionalLimits, RegionShare } from "../../core/limits/lending.js";
import type { LimitStore } from "../../store/limit-store.js";

/** Another region, and the store of its limits. */
export interface RegionPeer {
  /** Its name, unique among all regions. */
  readonly name: string;
  readonly store: LimitStore;
}

/** A change of what can be borrowed. Sent once for each change. */
export type LendingEvent =
  /** Calls to a region fail. Nothing is borrowed from it until a probe succeeds. */
  | { readonly kind: "regionLost"; readonly region: string; readonly code: ErrorCode }
  | { readonly kind: "regionFound"; readonly region: string }
  /** This region's store did not confirm a credit: its hits may be lost. */
  | { readonly kind: "creditFailed"; readonly region: string; readonly code: ErrorCode };

/** What a replica borrowed from one region so far. All counts only rise. */
export interface RegionLending {
  readonly region: string;
  /** False while calls to it fail. */
  readonly isReachable: boolean;
  /** Calls that asked for hits, and those of them that failed. */
  readonly callCount: number;
  readonly failedCallCount: number;
  readonly askedHits: number;
  /** Hits that were charged there and given to buckets here. */
  readonly borrowedHits: number;
  /**
   * Hits that were charged there, or may have been, and never reached a bucket here: a reply or a
   * credit was lost, or its window had ended.
   */
  readonly lostHits: number;
  /** The duration of the last successful call, in milliseconds. Absent: none succeeded yet. */
  readonly roundTripMs?: number;
}

/** The dependencies of a `Lender`. */
export interface LenderParts {
  /** This region's name, unique among all regions. */
  readonly region: string;
  /** This region's store. */
  readonly store: LimitStore;
  /** All other regions, at most `regionsMax` - 1. Every region must name the same ones. */
  readonly peers: readonly RegionPeer[];
  readonly clock: Clock;
  readonly random: Random;
  /** The current number of replicas in this region, at least 1. */
  readonly replicaCount: () => number;
  readonly onEvent?: (event: LendingEvent) => void;
}

/** Borrows hits of global limits from other regions, off the decision path. */
export class Lender implements RegionalLimits {
  readonly share: RegionShare;
  readonly denialMsMax = 100;

  /** Starts at once, until `close`. It does not close any store. */
  constructor({ region, peers }: LenderParts) {
    const names = [region, ...peers.map(({ name }) => name)].sort();
    this.share = { index: names.indexOf(region), count: names.length };
  }

  note(_demand: GlobalDemand): void {}

  /** What was borrowed from each region, sorted by name. */
  regions(): readonly RegionLending[] {
    return [];
  }

  /** Keys whose demand was not looked at because too many others had more. */
  get droppedKeyCount(): number {
    return 0;
  }

  /** Ends after the calls in flight, which end by their time budgets. */
  async close(): Promise<void> {}
}
