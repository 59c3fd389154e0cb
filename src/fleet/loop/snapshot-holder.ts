import type { Clock } from "../../core/base/clock.js";
import type { ShareSnapshot } from "../../core/feedback/feedback.js";
import { lapsedSnapshot } from "../../core/feedback/feedback-loop.js";
import { defaultLayerTtlMs } from "../../core/feedback/feedback-settings.js";
import {
  compareRanks,
  lowestRank,
  type SnapshotVersion,
} from "../../store/coordination/snapshot-version.js";
import type { GateVerdict } from "./fleet-gates.js";
import type { FleetSnapshot } from "./snapshot-codec.js";

/** What happens to the snapshot that holds here; each is told once. */
export type SnapshotEvent =
  /** The first snapshot of a term holds. */
  | { readonly kind: "leaderChanged"; readonly term: number; readonly leaderId: string }
  /** Nobody has renewed the snapshot for too long: Envoys' configured defaults hold. */
  | { readonly kind: "snapshotLost"; readonly term: number }
  | { readonly kind: "snapshotFound"; readonly term: number };

/** A snapshot that holds. */
export interface HeldSnapshot {
  readonly fleet: FleetSnapshot;
  /** When it was made, on the monotonic clock of who holds it. */
  readonly atMs: number;
}

interface SnapshotHolderOptions {
  readonly clock: Clock;
  /** How long a snapshot holds that nobody renews. Default `snapshotAgeMsMax`. */
  readonly ageMsMax?: number;
  readonly onEvent?: (event: SnapshotEvent) => void;
}

/** How long a snapshot holds that nobody renews: as long as Envoys keep what they were sent. */
export const snapshotAgeMsMax = defaultLayerTtlMs;

/**
 * The snapshot that holds at one replica. Once a snapshot of some term was seen, none of an older
 * term is handed out, nor an older snapshot of the same one.
 */
export class SnapshotHolder {
  readonly #options: SnapshotHolderOptions;
  readonly #listeners = new Set<() => void>();
  #held: HeldSnapshot | undefined;
  #seen: SnapshotVersion = lowestRank;
  #isLost = false;
  /** Snapshots that were older than what had been seen. */
  olderCount = 0;

  constructor(options: SnapshotHolderOptions) {
    this.#options = options;
  }

  /** The highest rank that was seen. */
  get seen(): SnapshotVersion {
    return this.#seen;
  }

  /** How long ago the newest snapshot was made, in milliseconds; undefined before the first. */
  get ageMs(): number | undefined {
    return this.#held && this.#options.clock.monotonicMs() - this.#held.atMs;
  }

  /** The snapshot that holds now; undefined: none, or one that is too old. */
  current(): ShareSnapshot | undefined {
    return this.#look()?.snapshot;
  }

  /** What holds now, or else what is still worth knowing of the newest snapshot there was. */
  lastKnown(): FleetSnapshot | undefined {
    const lapsed = this.#held && {
      snapshot: lapsedSnapshot(this.#held.fleet.snapshot),
      verdicts: new Map(),
    };
    return this.#look() ?? lapsed;
  }

  /** Everything that holds now, and when it was made on our monotonic clock. */
  held(): HeldSnapshot | undefined {
    const fleet = this.#look();
    const atMs = this.#held?.atMs;
    return fleet === undefined || atMs === undefined ? undefined : { fleet, atMs };
  }

  /** What the fleet says of a service's gate; undefined: nothing that holds. */
  verdict(service: string): GateVerdict | undefined {
    return this.#look()?.verdicts.get(service);
  }

  /** Calls back after every new snapshot, until the answer is called. */
  onSnapshot(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * Takes a snapshot over. False for one that is older than what was seen.
   *
   * @param atMs when it was made, on our monotonic clock
   */
  take(fleet: FleetSnapshot, atMs: number): boolean {
    const { snapshot } = fleet;
    if (compareRanks(snapshot, this.#seen) < 0) {
      this.olderCount += 1;
      return false;
    }
    const { term, leaderId } = snapshot;
    const before = this.#held?.fleet.snapshot;
    this.#held = { fleet, atMs };
    this.#seen = snapshot;
    // The store keeps the last snapshot for long: who comes up finds one that held for others once.
    const isLapsed = this.#isLapsed(atMs);
    if (before === undefined && isLapsed) this.#isLost = true;
    const isNewTerm = before?.term !== term || before.leaderId !== leaderId;
    if (isNewTerm && !isLapsed) this.#options.onEvent?.({ kind: "leaderChanged", term, leaderId });
    this.#look();
    for (const listener of [...this.#listeners]) listener();
    return true;
  }

  /** There is a snapshot of this rank, which cannot be had: what is older is not handed out. */
  noteSeen(rank: SnapshotVersion): void {
    if (compareRanks(rank, this.#seen) > 0) this.#seen = rank;
    this.#look();
  }

  /** What holds, and tells when that changes. */
  #look(): FleetSnapshot | undefined {
    const held = this.#held;
    if (held === undefined) return undefined;
    const { snapshot } = held.fleet;
    const { onEvent } = this.#options;
    const isOutranked =
      compareRanks({ ...snapshot, version: 0 }, { ...this.#seen, version: 0 }) < 0;
    const isLost = isOutranked || this.#isLapsed(held.atMs);
    if (isLost !== this.#isLost) {
      this.#isLost = isLost;
      onEvent?.({ kind: isLost ? "snapshotLost" : "snapshotFound", term: snapshot.term });
    }
    return isLost ? undefined : held.fleet;
  }

  #isLapsed(atMs: number): boolean {
    const { clock, ageMsMax = snapshotAgeMsMax } = this.#options;
    return clock.monotonicMs() - atMs >= ageMsMax;
  }
}
