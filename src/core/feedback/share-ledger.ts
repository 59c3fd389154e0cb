import { assert } from "../base/errors.js";
import { ClaimColumns, fairColumns } from "./fair-share.js";
import type { LoopTimes } from "./feedback-settings.js";

interface ShareLedgerParts {
  readonly times: Pick<LoopTimes, "ttlMs" | "snapshotSpreadMs" | "obeyMsMax">;
  /** Requests that an Envoy admits without a share: its configured default. */
  readonly configuredShare: number;
}

/** The share that one Envoy is to have in the end. */
export interface ShareWant {
  readonly entry: ShareEntry;
  /** A whole number from 1. */
  readonly target: number;
  /** For an Envoy that does not obey: what counts instead of what it may hold. */
  readonly reserved: number | undefined;
}

/** The goal of one step. */
interface GrantOrder {
  /** One for each Envoy with a share. The sum of their targets is at most `bound`. */
  readonly wants: readonly ShareWant[];
  /** Maximum that all Envoys together may hold. */
  readonly bound: number;
  /** Maximum that counts of the default of an Envoy whose share may have expired. Default: all. */
  readonly byDefaultMost?: number;
  /** Minimum share. Default 1. */
  readonly least?: 1 | 2;
}

/** A share that differs from its target by at most this part of itself is kept, if all fit. */
const keepRatio = 0.1;

/**
 * Records the share of one limit that each Envoy has, and what it may still hold. A share that was
 * reduced is active until its Envoy acknowledges less, or until it expires. So shares shrink at
 * once, and grow only into room that others have given up:
 *
 * ```
 * room = bound - the sum of what each may hold
 * ```
 *
 * An Envoy may hold its share; its earlier share, until it is known to hold less; and its default,
 * if its share was not renewed for so long that it may have expired. A report counts only from
 * `snapshotSpreadMs` after a reduction on: until then, some replica may still hand out the old
 * share to an Envoy that switches replicas.
 *
 * If an Envoy got its share before this ledger began, such as from an earlier leader, its older
 * share is unknown until it reports what it holds. But that was counted together with the shares of
 * all others. So as long as there is such an Envoy, all others together may have what they had
 * then, and no more.
 *
 * A new Envoy admits its configured default until it receives a share. So a share of at most that
 * adds nothing to what the fleet admits, and is given at once. Only the part above the default
 * waits for room.
 *
 * Example: a limit of 100, defaults of 30, and two Envoys with 50 each. A third one joins, with a
 * target of 34: the shares are 33, 33 and 30 at once. When the first two have acknowledged 33,
 * there is room for 4 more.
 *
 * All times are on one monotonic clock, in milliseconds.
 */
export class ShareLedger {
  readonly #parts: ShareLedgerParts;
  readonly #entries = new Map<string, ShareEntry>();

  constructor(parts: ShareLedgerParts) {
    this.#parts = parts;
  }

  /**
   * Adds a share of a snapshot, given before this ledger began. It may just have been reduced, so
   * what the Envoy holds is unknown until it reports it, or until the larger share has expired.
   * Restore all shares of a snapshot before any is granted.
   */
  restore(nodeId: string, share: number, nowMs: number): ShareEntry {
    const entry: ShareEntry = {
      ...noShare(nowMs),
      share,
      inherited: share,
      isUnknown: true,
      held: share,
      isControlled: true,
    };
    this.#entries.set(nodeId, entry);
    return entry;
  }

  /** Returns the entry of an Envoy. A new one has no share until one is granted. */
  open(nodeId: string, nowMs: number): ShareEntry {
    const known = this.#entries.get(nodeId);
    if (known !== undefined) return known;
    const entry = noShare(nowMs);
    this.#entries.set(nodeId, entry);
    return entry;
  }

  /** Returns the entry of an Envoy. Undefined: it never had a share. */
  find(nodeId: string): ShareEntry | undefined {
    return this.#entries.get(nodeId);
  }

  /**
   * Records what an Envoy may hold. A report that is older than what is known has no effect. An
   * Envoy without a share holds its configured default, which is not counted: it has no entry.
   *
   * @param held the maximum that it may admit: a whole number from 1
   * @param atMs the time of the report
   */
  noteHeld(entry: ShareEntry, held: number, atMs: number): void {
    if (entry.isControlled && atMs <= entry.heldAtMs) return;
    const { obeyMsMax, snapshotSpreadMs } = this.#parts.times;
    const isKnown = atMs >= entry.loweredAtMs + snapshotSpreadMs;
    entry.held = isKnown ? held : Math.max(held, entry.held);
    if (isKnown) entry.isUnknown = false;
    entry.heldAtMs = atMs;
    entry.isControlled = true;
    if (atMs < entry.loweredAtMs) return;
    if (held <= entry.share) {
      entry.obeyedAtMs ??= atMs;
      entry.disobeyedAtMs = undefined;
    } else {
      entry.obeyedAtMs = undefined;
      entry.disobeyedAtMs ??= atMs;
    }
    entry.isUnruly = atMs - (entry.disobeyedAtMs ?? atMs) >= obeyMsMax;
  }

  /**
   * Returns the maximum that an Envoy may admit now. Infinity if it may hold a share from before
   * this ledger began, which is not known here.
   */
  mayHold(entry: ShareEntry, nowMs: number): number {
    const isUnknown = entry.isUnknown && !this.#isOver(entry, nowMs);
    return isUnknown ? Number.POSITIVE_INFINITY : this.#mayHold(entry, nowMs);
  }

  /** Returns the sum of what all Envoys may hold. */
  total(nowMs: number): number {
    let sum = 0;
    for (const entry of this.#entries.values()) sum += this.mayHold(entry, nowMs);
    return sum;
  }

  /**
   * Reports whether an Envoy does not obey: it has held more than its share for long; or what it
   * holds was not reported for so long that it uses its configured default, which is more.
   */
  isUnruly(entry: ShareEntry, nowMs: number): boolean {
    if (!entry.isControlled) return false;
    const knownMs = Math.max(entry.heldAtMs, entry.metAtMs);
    const isExpired = nowMs >= knownMs + this.#parts.times.ttlMs;
    return entry.isUnruly || (isExpired && this.#parts.configuredShare > entry.share);
  }

  /**
   * Reports whether an Envoy may use its configured default, since no renewal of its share is
   * known. Renewals come each third of `ttlMs`: after half of it, one may be missing.
   */
  mayHaveExpired({ isControlled, heldAtMs }: ShareEntry, nowMs: number): boolean {
    return isControlled && nowMs >= heldAtMs + this.#parts.times.ttlMs / 2;
  }

  /**
   * Returns since when all Envoys are known to obey their present shares. Undefined while this is
   * not known of one. Envoys without a report for `silentMs` are not waited for.
   */
  obeyedSinceMs(silentMs: number, nowMs: number): number | undefined {
    let sinceMs = Number.NEGATIVE_INFINITY;
    for (const { isControlled, isUnruly, heldAtMs, obeyedAtMs } of this.#entries.values()) {
      if (!isControlled || isUnruly || nowMs - heldAtMs > silentMs) continue;
      if (obeyedAtMs === undefined) return undefined;
      if (obeyedAtMs > sinceMs) sinceMs = obeyedAtMs;
    }
    return sinceMs;
  }

  /**
   * Records that snapshots leave an Envoy out from now on. If it still receives layers, it uses its
   * configured default as soon as it is told. A replica that has not read the newest snapshot yet
   * may send it its share once more.
   */
  leaveOut(entry: ShareEntry, nowMs: number): void {
    lower(entry, entry.share, nowMs);
    entry.held = Math.max(entry.held, this.#parts.configuredShare);
  }

  /** Forgets an Envoy that is gone. Its share becomes free. */
  forget(nodeId: string): void {
    this.#entries.delete(nodeId);
  }

  /**
   * Moves all shares towards their targets as far as possible now: to at most `bound` together. An
   * Envoy without a target keeps what it may hold, and gets nothing.
   */
  grant(order: GrantOrder, nowMs: number): void {
    const { wants, least = 1 } = order;
    const { configuredShare } = this.#parts;
    const wanted = wantedShares(order);
    wants.forEach(({ entry }, i) => {
      const share = wanted[i] ?? 0;
      if (entry.share === 0) entry.share = Math.max(least, Math.min(share, configuredShare));
      if (share < entry.share) lower(entry, share, nowMs);
    });
    grow(wants, wanted, this.#room(order, nowMs));
  }

  #room({ wants, bound, byDefaultMost }: GrantOrder, nowMs: number): number {
    for (const { entry, reserved } of wants) entry.reserved = reserved;
    let room = bound;
    let inheritedRoom = 0;
    let isAllKnown = true;
    for (const entry of this.#entries.values()) {
      const { reserved, inherited } = entry;
      entry.reserved = undefined;
      const mayHold = reserved ?? this.#mayHold(entry, nowMs, byDefaultMost);
      const counted = Math.max(entry.share, mayHold);
      const isKnown = !entry.isUnknown || reserved !== undefined || this.#isOver(entry, nowMs);
      room -= counted;
      isAllKnown &&= isKnown;
      // An Envoy that is not known to hold less was counted with its inherited share.
      inheritedRoom += isKnown ? inherited - counted : Math.min(0, inherited - counted);
    }
    return isAllKnown ? room : Math.min(room, inheritedRoom);
  }

  /** As far as known here: without what an unknown Envoy had before. */
  #mayHold(entry: ShareEntry, nowMs: number, byDefaultMost = Number.POSITIVE_INFINITY): number {
    const { configuredShare } = this.#parts;
    const byDefault = this.mayHaveExpired(entry, nowMs)
      ? Math.min(configuredShare, byDefaultMost)
      : 0;
    return Math.max(entry.share, this.#isOver(entry, nowMs) ? 0 : entry.held, byDefault);
  }

  /** Whether all that it had before its share was reduced has expired, even without a report. */
  #isOver({ heldAtMs, loweredAtMs }: ShareEntry, nowMs: number): boolean {
    const { ttlMs, snapshotSpreadMs } = this.#parts.times;
    const knownMs = loweredAtMs + snapshotSpreadMs;
    return heldAtMs < knownMs && nowMs >= knownMs + ttlMs;
  }
}

/** The share of one Envoy, and what is known about what it holds. */
export interface ShareEntry {
  /** Its share in the newest snapshot. 0 before the first one. */
  share: number;
  /** Its share in the snapshot that this ledger began with. 0: it was not in it. */
  readonly inherited: number;
  /** Whether it may still hold a share from before that snapshot. */
  isUnknown: boolean;
  /** Maximum that it may hold besides its share, as known at `heldAtMs`. */
  held: number;
  heldAtMs: number;
  /** Whether it is known to have been sent a share. Before that, its default is not counted. */
  isControlled: boolean;
  readonly metAtMs: number;
  /** When its share was last reduced. */
  loweredAtMs: number;
  /** When it was first known to hold at most its share. Undefined: not yet. */
  obeyedAtMs: number | undefined;
  /** Since when it is known to hold more. Undefined: it is not. */
  disobeyedAtMs: number | undefined;
  isUnruly: boolean;
  /** As in `ShareWant`, during a step. */
  reserved: number | undefined;
}

function noShare(nowMs: number): ShareEntry {
  return {
    share: 0,
    inherited: 0,
    isUnknown: false,
    held: 0,
    heldAtMs: nowMs,
    isControlled: false,
    metAtMs: nowMs,
    loweredAtMs: nowMs,
    obeyedAtMs: undefined,
    disobeyedAtMs: undefined,
    isUnruly: false,
    reserved: undefined,
  };
}

/** Returns targets, or present shares that are about the same if all still fit together. */
function wantedShares({ wants, bound }: GrantOrder): Float64Array {
  const wanted = new Float64Array(wants.length);
  let sum = 0;
  let targetSum = 0;
  wants.forEach(({ entry: { share }, target, reserved = 0 }, i) => {
    assert(Number.isInteger(target) && target >= 1, "a target that is no share");
    const isNear = Math.abs(target - share) <= keepRatio * share;
    const kept = share > 0 && isNear ? share : target;
    wanted[i] = kept;
    sum += Math.max(kept, reserved);
    targetSum += target;
  });
  assert(targetSum <= bound, "targets above their bound");
  if (sum <= bound) return wanted;
  wants.forEach(({ target }, i) => {
    wanted[i] = Math.min(target, wanted[i] ?? target);
  });
  return wanted;
}

function grow(wants: readonly ShareWant[], wanted: Float64Array, room: number): void {
  if (!(room > 0)) return;
  const claims = new ClaimColumns(wants.length);
  wants.forEach(({ entry }, i) => {
    claims.demands[i] = Math.max(0, (wanted[i] ?? 0) - entry.share);
  });
  const grown = fairColumns(room, claims);
  wants.forEach(({ entry }, i) => {
    entry.share += grown[i] ?? 0;
  });
}

function lower(entry: ShareEntry, share: number, nowMs: number): void {
  entry.held = Math.max(entry.held, entry.share);
  entry.share = share;
  entry.loweredAtMs = nowMs;
  entry.obeyedAtMs = undefined;
  entry.disobeyedAtMs = undefined;
  entry.isUnruly = false;
}
