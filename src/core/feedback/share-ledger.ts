import { assert } from "../base/errors.js";
import { ClaimColumns, fairColumns } from "./fair-share.js";
import type { LoopTimes } from "./feedback-settings.js";

interface ShareLedgerParts {
  readonly times: Pick<LoopTimes, "ttlMs" | "snapshotSpreadMs" | "obeyMsMax">;
  /** What an Envoy lets into work without a share. */
  readonly configuredShare: number;
}

/** What one Envoy is to have in the end. */
export interface ShareWant {
  readonly entry: ShareEntry;
  /** A whole number from 1. */
  readonly target: number;
  /** What counts for one that does not follow, instead of what it may hold. */
  readonly reserved: number | undefined;
}

/** What one step is to come to. */
interface GrantOrder {
  /** One for each Envoy that has a share; their targets are together at most `bound`. */
  readonly wants: readonly ShareWant[];
  /** The most that all together may hold. */
  readonly bound: number;
  /** The most that counts of the default of an Envoy which may have expired. Default: all of it. */
  readonly byDefaultMost?: number;
  /** What nobody falls below. Default 1. */
  readonly least?: 1 | 2;
}

/** A target that differs by no more than this part of the share is left alone, while it may be. */
const keepRatio = 0.1;

/**
 * What each Envoy has been given of one limit, and what it may still be holding. A share that is
 * taken back is active until its Envoy has acknowledged less, or its time is up; so shares shrink
 * at once, and grow only into room that others have given up:
 *
 * ```
 * room = bound - the sum of what each may hold
 * ```
 *
 * An Envoy may hold its share; what was its share before, until it is known to hold less; and its
 * configured default, when nobody has renewed what it has for so long that it may have expired.
 * What is known must have been seen `snapshotSpreadMs` after the share was taken back: until then
 * some replica may still hand out the old one, to an Envoy that changes from one replica to
 * another.
 *
 * Of an Envoy that somebody else has given its share nobody knows what it was before, until it
 * says so. But whoever gave it has counted it together with the shares of all others: so as long as
 * there is such an Envoy, the others may have what they had then, all together, and no more.
 *
 * An Envoy that comes lets in its configured default until it is told a share, so a share of no
 * more than that adds nothing to what the fleet lets in: it is given at once. Only what it is to
 * have above its default waits for room.
 *
 * Example: a limit of 100, defaults of 30, and two Envoys with 50 each. A third one comes, and is
 * to have 34: 33, 33 and 30 at once. When the first two have acknowledged 33 each, there is room
 * for 4 more.
 *
 * All times are those of one monotonic clock, in milliseconds.
 */
export class ShareLedger {
  readonly #parts: ShareLedgerParts;
  readonly #entries = new Map<string, ShareEntry>();

  constructor(parts: ShareLedgerParts) {
    this.#parts = parts;
  }

  /**
   * A share that somebody else has given, who may have taken back any larger one a moment ago:
   * until this Envoy has told what it holds, or its time is up. All of one snapshot are restored
   * before anything is granted.
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

  /** What there is of an Envoy; a new one has no share before it is granted one. */
  open(nodeId: string, nowMs: number): ShareEntry {
    const known = this.#entries.get(nodeId);
    if (known !== undefined) return known;
    const entry = noShare(nowMs);
    this.#entries.set(nodeId, entry);
    return entry;
  }

  /** What there is of an Envoy; undefined: it never had a share. */
  find(nodeId: string): ShareEntry | undefined {
    return this.#entries.get(nodeId);
  }

  /**
   * Takes in what an Envoy may hold; what is older than what is known already says nothing. Of who
   * has no share yet it is its configured default, which is not ours to count.
   *
   * @param held the most that it may let into work: a whole number from 1
   * @param atMs when that was so
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
   * The most that an Envoy may let into work now; without end where somebody else has given it what
   * nobody here knows of.
   */
  mayHold(entry: ShareEntry, nowMs: number): number {
    const isUnknown = entry.isUnknown && !this.#isOver(entry, nowMs);
    return isUnknown ? Number.POSITIVE_INFINITY : this.#mayHold(entry, nowMs);
  }

  /** The sum of what all of them may hold. */
  total(nowMs: number): number {
    let sum = 0;
    for (const entry of this.#entries.values()) sum += this.mayHold(entry, nowMs);
    return sum;
  }

  /**
   * Whether it does not follow: it holds more than it was given, and has for long; or nobody has
   * heard of what it holds for so long that it goes by its configured default, which is more.
   */
  isUnruly(entry: ShareEntry, nowMs: number): boolean {
    if (!entry.isControlled) return false;
    const knownMs = Math.max(entry.heldAtMs, entry.metAtMs);
    const isExpired = nowMs >= knownMs + this.#parts.times.ttlMs;
    return entry.isUnruly || (isExpired && this.#parts.configuredShare > entry.share);
  }

  /**
   * Whether it may go by its configured default, since nobody is known to have renewed what it has.
   * Renewals come each third of the time: by half of it one may be due that never came.
   */
  mayHaveExpired({ isControlled, heldAtMs }: ShareEntry, nowMs: number): boolean {
    return isControlled && nowMs >= heldAtMs + this.#parts.times.ttlMs / 2;
  }

  /**
   * Since when all Envoys are known to have taken their present shares; undefined while that is not
   * known of one. Those of whom nobody has heard for `silentMs` are not waited for.
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
   * An Envoy that snapshots leave out from now on. Who still has its layers from here goes by its
   * configured default as soon as it is told; and may be given its share once more by who has not
   * read the newest snapshot yet.
   */
  leaveOut(entry: ShareEntry, nowMs: number): void {
    lower(entry, entry.share, nowMs);
    entry.held = Math.max(entry.held, this.#parts.configuredShare);
  }

  /** An Envoy that is gone; its share is free. */
  forget(nodeId: string): void {
    this.#entries.delete(nodeId);
  }

  /**
   * Moves all shares towards their targets as far as may be now: together to at most `bound`. Who
   * has no target keeps what it may hold, and gets nothing.
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
      // Who is not known to hold less has been counted with what it inherited.
      inheritedRoom += isKnown ? inherited - counted : Math.min(0, inherited - counted);
    }
    return isAllKnown ? room : Math.min(room, inheritedRoom);
  }

  /** As far as anybody here knows: of an unknown one, without what it had before. */
  #mayHold(entry: ShareEntry, nowMs: number, byDefaultMost = Number.POSITIVE_INFINITY): number {
    const { configuredShare } = this.#parts;
    const byDefault = this.mayHaveExpired(entry, nowMs)
      ? Math.min(configuredShare, byDefaultMost)
      : 0;
    return Math.max(entry.share, this.#isOver(entry, nowMs) ? 0 : entry.held, byDefault);
  }

  /** Whether all that it had before its share was taken back has run out, though nobody told. */
  #isOver({ heldAtMs, loweredAtMs }: ShareEntry, nowMs: number): boolean {
    const { ttlMs, snapshotSpreadMs } = this.#parts.times;
    const knownMs = loweredAtMs + snapshotSpreadMs;
    return heldAtMs < knownMs && nowMs >= knownMs + ttlMs;
  }
}

/** What one Envoy has been given, and what is known of what it holds. */
export interface ShareEntry {
  /** In the newest snapshot; 0 before the first one. */
  share: number;
  /** What it had in the snapshot that was begun with; 0: it was not in it. */
  readonly inherited: number;
  /** Whether it may still have something that was given before that snapshot. */
  isUnknown: boolean;
  /** The most that it may hold beside that, as far as it was known at `heldAtMs`. */
  held: number;
  heldAtMs: number;
  /** Somebody has sent it a share once; before that it is not ours to count. */
  isControlled: boolean;
  readonly metAtMs: number;
  /** When its share was taken back in part for the last time. */
  loweredAtMs: number;
  /** When it was first known to hold no more than its share; undefined: not yet. */
  obeyedAtMs: number | undefined;
  /** The same for having held more ever since. */
  disobeyedAtMs: number | undefined;
  isUnruly: boolean;
  /** As in `ShareWant`, while a step is taken. */
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

/** Targets, but the present share where that is about the same and all fit together even so. */
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
