import type { Limit, Role } from "../../src/core/limits/limit.js";
import type { KeyEvent } from "../support/simulated-events.js";

/**
 * The promise, computed exactly: in any interval a key admits at most its burst and what its rate
 * lets in meanwhile, and what the faults of the interval may add.
 *
 * Everything is whole: hits count in parts so small that each microsecond of each rate, also of one
 * that is divided by up to six replicas, is a whole number of them, and all sums stay below 2^53.
 */
const partsPerHit = 3_600_000_000;

/** A limit as the promise sees it, or a replica's share of one. */
export interface Allowance {
  /** Parts of a hit that a microsecond lets in. */
  readonly partsPerUs: number;
  readonly burst: number;
}

/** One thing that happened to a key. */
export type Happening =
  | {
      readonly kind: "asked";
      readonly atUs: number;
      readonly allowance: Allowance;
      readonly takenHits: number;
      /** Of these, hits that were admitted to nobody, and were given back. */
      inVainHits: number;
      /** What is settled may hold a second burst. */
      readonly role: Role;
      readonly refundedHits: number;
      /** When, by the clock of the server. */
      readonly serverUs: number;
      /** A lone charge of at most the burst did not fit. */
      readonly isRefused: boolean;
    }
  | { readonly kind: "clockForward"; readonly atUs: number; readonly byUs: number }
  | { readonly kind: "clockBack"; readonly atUs: number }
  | { readonly kind: "lost"; readonly atUs: number; readonly hits: number };

/** An interval in which more was admitted than promised. */
export interface Excess {
  readonly atUs: number;
  readonly hits: number;
  readonly burst: number;
}

/** The allowance of a limit that is divided by so many replicas, 1 to 6. */
export function allowanceOf(
  { hits, periodUs, burst }: Pick<Limit, "hits" | "periodUs" | "burst">,
  replicaCount = 1,
): Allowance {
  const partsPerUs = whole((hits * partsPerHit) / periodUs / replicaCount);
  const share = burst === 0 ? 0 : Math.max(1, Math.floor(burst / replicaCount));
  return { partsPerUs, burst: share };
}

/** What the store told of a key, as the promise sees it. */
export function happeningOf(
  event: Exclude<KeyEvent, { kind: "givenBack" }>,
  atUs: number,
): Happening {
  if (event.kind !== "asked") return { ...event, atUs };
  const { charge, takenHits, refundedHits, isOverAlone, serverUs } = event;
  return {
    kind: "asked",
    atUs,
    allowance: allowanceOf(charge),
    takenHits,
    inVainHits: 0,
    role: charge.role,
    refundedHits,
    serverUs,
    isRefused: isOverAlone && charge.cost <= charge.burst,
  };
}

/** A charge of the store's own, undone because another part denied the rest of the request. */
export interface GivingBack {
  readonly hits: number;
  /** When they were taken, by the clock of the server. */
  readonly chargedUs: number;
  readonly atUs: number;
}

/**
 * Notes that hits were admitted to nobody; false when nobody took them. A clock that went back in
 * between makes it look as if less had drained, and up to all of them are given back too much. So
 * are those that a caller's refund has given back already: the promise is net of refunds.
 */
export function markInVain(happenings: Happening[], back: GivingBack): boolean {
  let leftHits = back.hits;
  let refundedHits = 0;
  let isSteppedBack = false;
  // Which of the charges of one time it was makes no difference.
  for (let i = happenings.length - 1; i >= 0 && leftHits > 0; i -= 1) {
    const one = happenings[i];
    if (one?.kind === "clockBack") isSteppedBack = true;
    if (one?.kind === "asked") refundedHits += one.refundedHits;
    if (one?.kind !== "asked" || one.serverUs !== back.chargedUs) continue;
    const hits = Math.min(leftHits, one.takenHits - one.inVainHits);
    one.inVainHits += hits;
    leftHits -= hits;
  }
  const hits = isSteppedBack ? back.hits : Math.min(back.hits, refundedHits);
  if (hits > 0) happenings.push({ kind: "lost", atUs: back.atUs, hits });
  return leftHits === 0;
}

/**
 * The first interval that admitted too much; undefined when there is none.
 *
 * Its rate and its burst are the largest of the limits that decided in it, so each pair of them is
 * tried on the stretches in which nothing larger decided.
 */
export function findExcess(happenings: readonly Happening[]): Excess | undefined {
  const rates = new Set<number>();
  const bursts = new Set<number>();
  for (const one of happenings) {
    if (one.kind !== "asked") continue;
    rates.add(one.allowance.partsPerUs);
    bursts.add(one.allowance.burst);
  }
  for (const partsPerUs of rates) {
    for (const burst of bursts) {
      const found = findExcessOf({ partsPerUs, burst }, happenings);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/**
 * The worst interval that ends now exceeds the rate by `excess`: it grows by what is admitted and
 * shrinks as time passes, but never below an interval that only begins now.
 */
function findExcessOf(most: Allowance, happenings: readonly Happening[]): Excess | undefined {
  const { partsPerUs, burst } = most;
  let excess = 0;
  let lastUs = 0;
  const shrink = (byParts: number): void => {
    excess = Math.max(0, excess - byParts);
  };
  for (const one of happenings) {
    shrink((one.atUs - lastUs) * partsPerUs);
    lastUs = one.atUs;
    if (one.kind === "clockForward") {
      shrink(one.byUs * partsPerUs);
    } else if (one.kind === "clockBack") {
      // It makes nothing fit that did not fit before.
    } else if (one.kind === "lost") {
      shrink(one.hits * partsPerHit);
    } else if (one.allowance.partsPerUs > partsPerUs || one.allowance.burst > burst) {
      excess = 0;
    } else {
      shrink(one.refundedHits * partsPerHit);
      const admittedHits = one.takenHits - one.inVainHits;
      excess = whole(excess + admittedHits * partsPerHit);
      if (admittedHits > 0 && excess > burst * partsPerHit) {
        return { atUs: one.atUs, hits: excess / partsPerHit, burst };
      }
    }
  }
  return undefined;
}

/**
 * The first time that a charge was refused although nothing had been taken for as long as a full
 * bucket takes to drain; undefined when there is none. Full is what the largest limit so far may
 * have left, and it drains as whoever wrote it last has it. A clock that stepped back starts that
 * time anew when the key is next asked: its bucket then seems to have been written now.
 */
export function findStuck(happenings: readonly Happening[]): number | undefined {
  const mayOwe = happenings.some((one) => one.kind === "asked" && one.role === "settle");
  let burstMost = 0;
  let drainedUs = Number.NEGATIVE_INFINITY;
  let writtenPartsPerUs = 0;
  let isSteppedBack = false;
  for (const one of happenings) {
    // What a replica of the store has may be from before the step.
    if (one.kind === "clockBack" || one.kind === "lost") isSteppedBack = true;
    if (one.kind !== "asked") continue;
    const { partsPerUs, burst } = one.allowance;
    // A limit that blocks everything refuses for ever, and writes nothing.
    if (partsPerUs === 0) continue;
    burstMost = Math.max(burstMost, burst);
    if (isSteppedBack || one.takenHits + one.refundedHits > 0 || one.role === "settle") {
      const drainUs = ((mayOwe ? 2 : 1) * burstMost * partsPerHit) / partsPerUs;
      drainedUs = Math.max(drainedUs, one.atUs + drainUs);
      writtenPartsPerUs = partsPerUs;
    }
    isSteppedBack = false;
    // To a slower limit it has not drained before it expires, which is told in milliseconds.
    const slackUs = partsPerUs < writtenPartsPerUs ? expirySlackUs : 1;
    if (one.isRefused && one.atUs > drainedUs + slackUs) return one.atUs;
  }
  return undefined;
}

/** A key is kept for a whole number of milliseconds, rounded up, and one more. */
const expirySlackUs = 2_000;

function whole(value: number): number {
  if (!Number.isSafeInteger(value)) throw new Error(`${value} is not a safe whole number`);
  return value;
}
