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

/** A change of the snapshot that applies here. Each is reported once. */
export type SnapshotEvent =
  /** The first snapshot of a term applies. */
  | { readonly kind: "leaderChanged"; readonly term: number; readonly leaderId: string }
  /** The snapshot was not renewed for too long: Envoys' configured defaults apply. */
  | { readonly kind: "snapshotLost"; readonly term: number }
  | { readonly kind: "snapshotFound"; readonly term: number };

/** A snapshot that applies. */
export interface HeldSnapshot {
  readonly fleet: FleetSnapshot;
  /** When it was made, on the monotonic clock of its holder. */
  readonly atMs: number;
}

interface SnapshotHolderOptions {
  readonly clock: Clock;
  /** How long a snapshot applies if it is not renewed. Default `snapshotAgeMsMax`. */
  readonly ageMsMax?: number;
  readonly onEvent?: (event: SnapshotEvent) => void;
}

/** How long a snapshot applies without renewal: as long as Envoys keep what they were sent. */
export const snapshotAgeMsMax = defaultLayerTtlMs;

/**
 * The snapshot that applies at one replica. Once a snapshot of a term has been seen, none of an
 * older term is handed out, and no older one of the same term is accepted.
 */
export class SnapshotHolder {
  readonly #options: SnapshotHolderOptions;
  readonly #listeners = new Set<() => void>();
  #held: HeldSnapshot | undefined;
  #seen: SnapshotVersion = lowestRank;
  #isLost = false;
  /** Number of snapshots that were older than one that had been seen. */
  olderCount = 0;

  constructor(options: SnapshotHolderOptions) {
    this.#options = options;
  }

  /** The highest rank that was seen. */
  get seen(): SnapshotVersion {
    return this.#seen;
  }

  /** Age of the newest snapshot, in milliseconds. Undefined before the first. */
  get ageMs(): number | undefined {
    return this.#held && this.#options.clock.monotonicMs() - this.#held.atMs;
  }

  /** Returns the snapshot that applies now. Undefined if there is none, or it is too old. */
  current(): ShareSnapshot | undefined {
    return this.#look()?.snapshot;
  }

  /** Returns what applies now, or otherwise what is still useful of the newest snapshot. */
  lastKnown(): FleetSnapshot | undefined {
    const lapsed = this.#held && {
      snapshot: lapsedSnapshot(this.#held.fleet.snapshot),
      verdicts: new Map(),
    };
    return this.#look() ?? lapsed;
  }

  /** Returns everything that applies now, and when it was made, on the local monotonic clock. */
  held(): HeldSnapshot | undefined {
    const fleet = this.#look();
    const atMs = this.#held?.atMs;
    return fleet === undefined || atMs === undefined ? undefined : { fleet, atMs };
  }

  /** Returns the fleet's verdict on a service's gate. Undefined if none applies. */
  verdict(service: string): GateVerdict | undefined {
    return this.#look()?.verdicts.get(service);
  }

  /** Calls back after every new snapshot. The returned function unsubscribes. */
  onSnapshot(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * Takes over a snapshot. Returns false if it is older than one that was seen.
   *
   * @param atMs when it was made, on the local monotonic clock
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
    // The store keeps the last snapshot for long, so a new replica may find one that has expired.
    const isLapsed = this.#isLapsed(atMs);
    if (before === undefined && isLapsed) this.#isLost = true;
    const isNewTerm = before?.term !== term || before.leaderId !== leaderId;
    if (isNewTerm && !isLapsed) this.#options.onEvent?.({ kind: "leaderChanged", term, leaderId });
    this.#look();
    for (const listener of [...this.#listeners]) listener();
    return true;
  }

  /** Notes a snapshot that cannot be fetched: those of older terms are not handed out any more. */
  noteSeen(rank: SnapshotVersion): void {
    if (compareRanks(rank, this.#seen) > 0) this.#seen = rank;
    this.#look();
  }

  /** Returns what applies, and reports changes of it. */
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
