import type { PermitHolder, PermitShare, SharesPermits } from "./permit-share.js";

/** Requests over which what is in use here is averaged. */
const meanCount = 16;

/** More than any law's. */
const unknownLimit = 1_000_000_000;

/** A law that learns a limit. */
export interface LearningLaw {
  readonly limit: number;
  /** Goes on from what others have learned. */
  startFrom(limit: number): void;
}

/** Whether a law can go on from what others have learned, and so learn with them. */
export function startsFromOthers<T extends Partial<LearningLaw>>(law: T): law is T & LearningLaw {
  return law.startFrom !== undefined;
}

interface LearnedShareParts {
  /** The pool's among replicas. */
  readonly name: string;
  readonly law: LearningLaw;
  readonly inUseCount: () => number;
  /** Told when more may be in use here. */
  readonly onGrown: () => void;
  readonly shares: SharesPermits;
}

/**
 * A replica's part of a limit that the fleet's replicas learn: each by itself, but from what all of
 * them have in use, so that they come to the same, and it is divided among them by need. It bounds
 * no more than a law's limit does: critical requests may pass it.
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

  /** Who has just begun says nothing: what it begins with would hold for all others, too. */
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

  /** A permit was taken. */
  noteTaken(): void {
    this.#takenCount += 1;
    this.#meanInUse += (this.inUseCount() - this.#meanInUse) / meanCount;
  }

  /** Somebody was refused who needed one. */
  noteRefused(): void {
    this.#refusedCount += 1;
  }

  /** Permits that this replica may have in use: never none, or nothing would be learned here. */
  permits(nowMs: number): number {
    return Math.max(1, Math.min(this.#parts.law.limit, this.#share.permits(nowMs)));
  }

  /** Permits that others have in use. */
  othersInUse(nowMs: number): number {
    return this.#share.othersInUse(nowMs);
  }

  /** Gives it up. */
  close(): void {
    this.#share.close();
  }
}
