import type { PermitHolder, PermitShare, SharesPermits } from "./permit-share.js";

/** Number of requests over which the permits in use are averaged. */
const meanCount = 16;

/** Higher than the limit of any algorithm. */
const unknownLimit = 1_000_000_000;

/** An algorithm that learns a limit. */
export interface LearningLaw {
  readonly limit: number;
  /** Continues from the limit that others have learned. */
  startFrom(limit: number): void;
}

/** Reports whether an algorithm can continue from what others learned, and so learn with them. */
export function startsFromOthers<T extends Partial<LearningLaw>>(law: T): law is T & LearningLaw {
  return law.startFrom !== undefined;
}

interface LearnedShareParts {
  /** Name of the pool, the same in all replicas. */
  readonly name: string;
  readonly law: LearningLaw;
  readonly inUseCount: () => number;
  /** Called when more permits may be in use here. */
  readonly onGrown: () => void;
  readonly shares: SharesPermits;
}

/**
 * A replica's part of a limit that the replicas of a fleet learn. Each learns by itself, but from
 * what all have in use, so they find the same limit, which is divided among them by need. It bounds
 * no more than an algorithm's limit does: critical requests may exceed it.
 */
export class LearnedShare implements PermitHolder {
  readonly name: string;
  readonly #parts: LearnedShareParts;
  readonly #share: PermitShare;
  #meanInUse = 0;
  #takenCount = 0;
  #isHeard = false;
  #refusedCount = 0;

  constructor(parts: LearnedShareParts) {
    this.name = `${parts.name}/learned`;
    this.#parts = parts;
    this.#share = parts.shares.open(this);
  }

  /** A new replica reports no limit: its initial limit would apply to all others, too. */
  fleetLimit(): number {
    return this.#isHeard ? this.#parts.law.limit : unknownLimit;
  }

  agreed(limit: number): void {
    if (!this.#isHeard && limit < unknownLimit) this.#parts.law.startFrom(limit);
    this.#isHeard = true;
  }

  inUseCount(): number {
    return this.#parts.inUseCount();
  }

  takeDemand(): number {
    if (this.#takenCount === 0) this.#meanInUse = this.inUseCount();
    const demand = Math.round(this.#meanInUse) + this.#refusedCount;
    this.#takenCount = 0;
    this.#refusedCount = 0;
    return demand;
  }

  shareGrew(): void {
    this.#parts.onGrown();
  }

  /** Notes that a permit was taken. */
  noteTaken(): void {
    this.#takenCount += 1;
    this.#meanInUse += (this.inUseCount() - this.#meanInUse) / meanCount;
  }

  /** Notes that a request that needed a permit was refused. */
  noteRefused(): void {
    this.#refusedCount += 1;
  }

  /** Returns the permits that this replica may use: at least 1, or it would learn nothing. */
  permits(nowMs: number): number {
    return Math.max(1, Math.min(this.#parts.law.limit, this.#share.permits(nowMs)));
  }

  /** Returns the permits that other replicas have in use. */
  othersInUse(nowMs: number): number {
    return this.#share.othersInUse(nowMs);
  }

  /** Gives up the share. */
  close(): void {
    this.#share.close();
  }
}
