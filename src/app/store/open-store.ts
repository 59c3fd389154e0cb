import type { Clock, Random } from "../../core/base/clock.js";
import type { RegionPeer } from "../../fleet/regions/lender.js";
import type { CoordinationStore } from "../../store/coordination/coordination-store.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import type { StoreChoice } from "../config/store-choice.js";
import type { StorePool } from "./store-journal.js";

/** Parts for opening the store. */
export interface StoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly onBadBuckets: (count: number) => void;
}

/** The store of this process. */
export interface OpenStore {
  /** Name of the store in metrics and for people. */
  readonly kind: StoreChoice["kind"];
  readonly store: LimitStore;
  readonly openSpace: OpenSpace;
  readonly coordination: CoordinationStore;
  /** The other regions, and the stores of their limits, which the caller closes separately. */
  readonly peers: readonly RegionPeer[];
  /** Whether any server that it needs is unreachable now. */
  readonly isAway: () => boolean;
  /** Connections to each server that it needs. */
  readonly pools: () => readonly StorePool[];
  /** Number of keys of limits in the store. Absent: not known here. */
  readonly keyCount?: () => number;
}

/**
 * Opens buckets that are separate from all others. They use no connection of their own, and none
 * that decisions use, so that they delay nothing. The caller must not close them.
 *
 * @param name letters, digits and colons
 */
export type OpenSpace = (name: string) => LimitStore;
