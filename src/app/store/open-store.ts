import type { Clock, Random } from "../../core/base/clock.js";
import type { RegionPeer } from "../../fleet/regions/lender.js";
import type { CoordinationStore } from "../../store/coordination/coordination-store.js";
import type { LimitStore } from "../../store/limit-store.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import type { StoreChoice } from "../config/store-choice.js";
import type { StorePool } from "./store-journal.js";

/** What opening the store needs. */
export interface StoreParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly onBadBuckets: (count: number) => void;
}

/** The store of this process. */
export interface OpenStore {
  /** What metrics and people call it. */
  readonly kind: StoreChoice["kind"];
  readonly store: LimitStore;
  readonly openSpace: OpenSpace;
  readonly coordination: CoordinationStore;
  /** The other regions, and the stores of their limits, which are closed apart. */
  readonly peers: readonly RegionPeer[];
  /** Whether some server that it needs cannot be reached at all now. */
  readonly isAway: () => boolean;
  /** Connections to each server that it needs. */
  readonly pools: () => readonly StorePool[];
  /** Keys of limits that it holds; absent: that is not known here. */
  readonly keyCount?: () => number;
}

/**
 * Opens buckets apart from all others, for who is in nobody's way: no connection of its own, and
 * none that decisions use. It is not to be closed.
 *
 * @param name letters, digits and colons
 */
export type OpenSpace = (name: string) => LimitStore;
