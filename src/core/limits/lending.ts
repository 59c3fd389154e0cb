import type { Charge } from "./bucket.js";
import type { ChargeResult } from "./gcra.js";
import type { Limit } from "./limit.js";

/** A region among all regions that share global limits, sorted by name. */
export interface RegionShare {
  /** 0 to `count` - 1. */
  readonly index: number;
  /** The number of regions, at least 1. */
  readonly count: number;
}

/** The maximum number of regions that share global limits. */
export const regionsMax = 16;

/** What a decision found for a global limit of its request. */
export interface GlobalDemand {
  /** The whole limit, with the key's override applied, before it was divided. */
  readonly limit: Limit;
  /** The charge against this region's part. */
  readonly charge: Charge;
  readonly result: ChargeResult;
  /** The store's time of the decision. */
  readonly nowUs: number;
}

/** What the decision path needs to know of regions. */
export interface RegionalLimits {
  readonly share: RegionShare;
  /** The maximum age of a bucket's state that a global limit is denied from, in milliseconds. */
  readonly denialMsMax: number;
  /** Called for each decision of a global limit. Returns at once. */
  note(demand: GlobalDemand): void;
}
