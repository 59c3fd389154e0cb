import {
  type Bucket,
  bucketTimeToFullUs,
  type Charge,
  levelAt,
  pastBucket,
  unitsPerHit,
} from "./bucket.js";
import { denialOf, isSettled, type LimitKey } from "./limit.js";

/**
 * GCRA in its continuous-state leaky-bucket form. A bucket holds `level` (what is used) at a time;
 * it drains at the limit's rate and a charge fits while the level stays within the burst.
 *
 * Promise: in any interval of length t a key admits at most burst + floor(t * rate) hits, net of
 * callers' refunds. Rounding always goes against admission: less than one part in 2^20 of a hit a
 * charge. Where limits differ, as while an edit is on its way to all replicas, burst and rate are
 * the largest of those that decided in the interval.
 *
 * Why: let A be the level of an ideal bucket that starts empty with the interval, takes what the
 * interval admits, and drains at its largest rate. The stored level is never below A: both take the
 * same, the stored one drains no faster, and it is forgotten only when the one who wrote it would
 * have seen it empty, at a rate no larger than A's. Whoever admits leaves the stored level, so A
 * too, within a burst of the interval. What drained and what A holds is all that was admitted.
 *
 * So no decision may lower a level but by draining and refunds, not even one that is far above the
 * burst of who decides: others may know a larger burst, and would admit again what was forgotten.
 *
 * Source: ITU-T I.371, annex A, the continuous-state leaky bucket algorithm.
 */

/** What the law found for one charge. */
export interface ChargeResult {
  readonly isOver: boolean;
  /** The bucket that says what is left and when more is: after the charge if it was committed. */
  readonly bucket: Bucket;
}

/** What the law decided for one request: all or nothing over its charges. */
export interface RequestResult {
  readonly isDenied: boolean;
  /** One a charge, in the order of the charges. */
  readonly results: readonly ChargeResult[];
}

/** A request, and how many times in a row it is asked at one moment. */
export interface RepeatedRequest {
  readonly charges: readonly Charge[];
  /** 1 to `multiplicityMax`; more than 1 only where `isRepeatable` says so of the charges. */
  readonly multiplicity: number;
}

/** What the law decided for a repeated request. */
export interface RepeatedResult {
  /** How many were granted, 0 to the multiplicity: the first ones; the others are denied. */
  readonly grantedCount: number;
  /**
   * One a charge: the bucket after all that was granted, and whether the first that was denied met
   * a charge that is over; none is over where all were granted. The j-th of k granted requests saw
   * this level less (k - j) times its cost.
   */
  readonly results: readonly ChargeResult[];
}

/** The most times that one request may be asked in a row. */
export const multiplicityMax = 4_294_967_295;

/** Where buckets live: a missing one is empty. */
export interface BucketTable {
  get(key: LimitKey): Bucket | undefined;
  /** Stores a bucket until it has drained, `timeToFullUs` from now. */
  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void;
  /** Forgets an empty bucket. */
  delete(key: LimitKey): void;
}

/** A key's bucket while a request is being decided: shared by all its charges on that key. */
interface Draft {
  /** The first charge on the key. */
  readonly charge: Charge;
  /** As stored, not in the future: what a refused ask leaves alone. */
  readonly base: Bucket;
  /**
   * The stored time was in the future, or the base comes from the limit that was carried last; it
   * is written back even when nothing is charged.
   */
  readonly isRewritten: boolean;
  /** The charge's, where no draft before this one has it. */
  readonly lastKey: LimitKey | undefined;
  /** The base drained until now. */
  readonly levelNow: number;
  /** `levelNow` with what was charged so far. */
  level: number;
  /** Whether a charge changed `level`: then it holds as of now, else `base` does. */
  isTouched: boolean;
}

/** A charge, the bucket it meets, and what it found there. */
interface Ask {
  readonly charge: Charge;
  readonly draft: Draft;
  result: ChargeResult;
}

interface Surroundings {
  readonly table: BucketTable;
  readonly nowUs: number;
}

/**
 * Decides one request over all its charges and writes what follows into the table.
 *
 * Charges are evaluated in order on tentative state, so the same key twice counts twice. The
 * request is denied when an enforce or settle charge is over, or when it has quota charges and all
 * are over. Not denied: every charge that fits is committed. Denied: only settle charges and
 * refunds are. A refused ask writes nothing, except a bucket whose time was in the future, and what
 * a carried limit begins with (`Charge.lastKey`).
 */
export function decideRequest(
  charges: readonly Charge[],
  table: BucketTable,
  nowUs: number,
): RequestResult {
  const drafts: Draft[] = [];
  const asks: Ask[] = [];
  for (const charge of charges) {
    const draft = draftFor(charge, drafts, { table, nowUs });
    asks.push({ charge, draft, result: evaluate(charge, draft, nowUs) });
  }
  const isDenied = isRequestDenied(asks);
  if (isDenied) withdraw(asks, drafts, nowUs);
  for (const draft of drafts) commit(draft, { table, nowUs });
  return { isDenied, results: asks.map((ask) => ask.result) };
}

/**
 * Whether a denial of the request stays true until something drains: every charge enforces, takes
 * something and is on a key of its own, so that a denied one leaves nothing behind.
 */
export function isPlainRequest(charges: readonly Charge[]): boolean {
  if (!charges.every(isPlain)) return false;
  return charges.length < 2 || new Set(charges.map(({ key }) => key)).size === charges.length;
}

/**
 * Whether a request may be asked several times in a row by its multiplicity: it is plain, and its
 * buckets drain where they hold anything. Then what is granted leaves each bucket one cost fuller,
 * and from the first denial on all are denied alike. Windows, and limits that requests carry, are
 * left to be asked one by one.
 */
export function isRepeatable(charges: readonly Charge[]): boolean {
  for (const { hits, burst, windows, lastKey } of charges) {
    if (windows !== undefined || lastKey !== undefined || (hits === 0 && burst > 0)) return false;
  }
  return isPlainRequest(charges);
}

/**
 * Decides `multiplicity` identical requests, as `decideRequest` would one after the other at one
 * time, in constant time: granted are as many as fit each bucket, floor((burst - level) / cost).
 *
 * Example: burst 10, 3.2 hits used, cost 2, multiplicity 5: 3 are granted and leave 9.2 used.
 */
export function decideRepeated(
  { charges, multiplicity }: RepeatedRequest,
  table: BucketTable,
  nowUs: number,
): RepeatedResult {
  const [first, second] = charges;
  if (first !== undefined && isSimple(first)) {
    if (charges.length === 1) return decideOne(first, multiplicity, { table, nowUs });
    if (charges.length === 2 && second !== undefined && isSimple(second)) {
      const pair = [first, second] as const;
      if (first.key !== second.key) return decideTwo(pair, multiplicity, { table, nowUs });
    }
  }
  if (multiplicity === 1) {
    const { isDenied, results } = decideRequest(charges, table, nowUs);
    return { grantedCount: isDenied ? 0 : 1, results };
  }
  const drafts: Draft[] = [];
  let grantedCount = multiplicity;
  for (const charge of charges) {
    const draft = draftFor(charge, drafts, { table, nowUs });
    grantedCount = Math.min(grantedCount, fittingCount(charge, draft.level));
  }
  const results = drafts.map((draft): ChargeResult => {
    const { charge } = draft;
    touch(draft, draft.level + grantedCount * charge.cost * unitsPerHit);
    const isOver = grantedCount < multiplicity && fittingCount(charge, draft.level) === 0;
    return { isOver, bucket: draftBucket(draft, nowUs) };
  });
  for (const draft of drafts) commit(draft, { table, nowUs });
  return { grantedCount, results };
}

function isPlain({ role, isRefund, cost }: Charge): boolean {
  return role === "enforce" && !isRefund && cost > 0;
}

/** Whether a charge is plain, and meets a bucket that no other limit says anything of. */
function isSimple(charge: Charge): boolean {
  return isPlain(charge) && charge.lastKey === undefined;
}

/** A request of one simple charge, as nearly all are: the same steps without drafts. */
function decideOne(
  charge: Charge,
  multiplicity: number,
  { table, nowUs }: Surroundings,
): RepeatedResult {
  const stored = table.get(charge.key);
  const base = pastBucket(stored, nowUs);
  const level = levelAt(charge, base, nowUs);
  const grantedCount = Math.min(multiplicity, fittingCount(charge, level));
  const isOver = grantedCount < multiplicity;
  if (grantedCount === 0) {
    if (stored !== undefined && base !== stored) store(charge, base, { table, nowUs });
    return { grantedCount, results: [{ isOver, bucket: base }] };
  }
  const bucket = { level: level + grantedCount * charge.cost * unitsPerHit, tUs: nowUs };
  store(charge, bucket, { table, nowUs });
  return { grantedCount, results: [{ isOver, bucket }] };
}

/** A request of two simple charges on keys of their own, as most others are: in the same way. */
function decideTwo(
  [one, other]: readonly [Charge, Charge],
  multiplicity: number,
  surroundings: Surroundings,
): RepeatedResult {
  const met = meet(one, surroundings);
  const metOther = meet(other, surroundings);
  const fittingBoth = Math.min(met.fittingCount, metOther.fittingCount);
  const asked = { multiplicity, grantedCount: Math.min(multiplicity, fittingBoth) };
  const results = [leave(met, asked, surroundings), leave(metOther, asked, surroundings)];
  return { grantedCount: asked.grantedCount, results };
}

/** What a simple charge finds before anything is charged. */
interface Met {
  readonly charge: Charge;
  readonly base: Bucket;
  readonly isSteppedBack: boolean;
  readonly level: number;
  readonly fittingCount: number;
}

function meet(charge: Charge, { table, nowUs }: Surroundings): Met {
  const stored = table.get(charge.key);
  const base = pastBucket(stored, nowUs);
  const isSteppedBack = stored !== undefined && base !== stored;
  const level = levelAt(charge, base, nowUs);
  return { charge, base, isSteppedBack, level, fittingCount: fittingCount(charge, level) };
}

/** Charges what was granted; nothing is left of a request that was denied at once. */
function leave(
  { charge, base, isSteppedBack, level, fittingCount: fitting }: Met,
  asked: { readonly multiplicity: number; readonly grantedCount: number },
  surroundings: Surroundings,
): ChargeResult {
  const { multiplicity, grantedCount } = asked;
  const isOver = grantedCount < multiplicity && fitting === grantedCount;
  if (grantedCount === 0) {
    if (isSteppedBack) store(charge, base, surroundings);
    return { isOver, bucket: base };
  }
  const { nowUs } = surroundings;
  const bucket = { level: level + grantedCount * charge.cost * unitsPerHit, tUs: nowUs };
  store(charge, bucket, surroundings);
  return { isOver, bucket };
}

/**
 * How often the charge's cost fits above a level, rounded down; 0 above the burst. The quotient of
 * whole numbers below 2^53 is never rounded up to a whole one, so the floor is exact.
 */
function fittingCount(charge: Charge, level: number): number {
  const free = charge.burst * unitsPerHit - level;
  return free <= 0 ? 0 : Math.floor(free / (charge.cost * unitsPerHit));
}

/** The draft of the charge's key; the first charge on a key reads its bucket. */
function draftFor(charge: Charge, drafts: Draft[], surroundings: Surroundings): Draft {
  for (const earlier of drafts) if (earlier.charge.key === charge.key) return earlier;
  const { table, nowUs } = surroundings;
  const stored = table.get(charge.key);
  let base = pastBucket(stored, nowUs);
  let isRewritten = stored !== undefined && base !== stored;
  let levelNow = levelAt(charge, base, nowUs);
  const lastKey = charge.lastKey === undefined ? undefined : unreportedKey(charge.lastKey, drafts);
  const lastLevel = lastKey === undefined ? 0 : carriedLevel(charge, lastKey, surroundings);
  if (levelNow === 0 && lastLevel > 0) {
    levelNow = lastLevel;
    base = { level: lastLevel, tUs: nowUs };
    isRewritten = true;
  }
  const draft: Draft = {
    charge,
    base,
    isRewritten,
    lastKey,
    levelNow,
    level: levelNow,
    isTouched: false,
  };
  drafts.push(draft);
  return draft;
}

/** The key, unless a draft before has it. */
function unreportedKey(lastKey: LimitKey, drafts: readonly Draft[]): LimitKey | undefined {
  return drafts.some((earlier) => earlier.lastKey === lastKey) ? undefined : lastKey;
}

/**
 * What the limit that was carried last has in use, drained at the rate of this one, and at most its
 * burst: a limit that is raised or lowered counts what was used. It is taken over once, also by who
 * is refused for it, and drains from then on: else a small limit would be refused for as long as a
 * large one is asked beside it.
 */
function carriedLevel(charge: Charge, lastKey: LimitKey, surroundings: Surroundings): number {
  const { table, nowUs } = surroundings;
  const stored = table.get(lastKey);
  const last = pastBucket(stored, nowUs);
  if (stored !== undefined && last !== stored)
    store({ ...charge, key: lastKey }, last, surroundings);
  return Math.min(levelAt(charge, last, nowUs), charge.burst * unitsPerHit);
}

/** What one charge finds on the draft, which is changed as if the request were not denied. */
function evaluate(charge: Charge, draft: Draft, nowUs: number): ChargeResult {
  const burst = charge.burst * unitsPerHit;
  const cost = charge.cost * unitsPerHit;
  if (charge.isRefund) {
    touch(draft, Math.max(0, draft.level - cost));
    return { isOver: false, bucket: draftBucket(draft, nowUs) };
  }
  if (cost === 0) {
    const wanted = charge.peekExhausted ? draft.level + unitsPerHit : draft.level;
    return { isOver: wanted > burst, bucket: draftBucket(draft, nowUs) };
  }
  if (isSettled(charge.role)) {
    const isOver = draft.level + cost > burst;
    touch(draft, Math.max(draft.level, Math.min(draft.level + cost, 2 * burst)));
    return { isOver, bucket: draftBucket(draft, nowUs) };
  }
  const isOver = draft.level + cost > burst;
  if (!isOver) touch(draft, draft.level + cost);
  return { isOver, bucket: draftBucket(draft, nowUs) };
}

function touch(draft: Draft, level: number): void {
  if (draft.level === level) return;
  draft.level = level;
  draft.isTouched = true;
}

function draftBucket(draft: Draft, nowUs: number): Bucket {
  return draft.isTouched ? { level: draft.level, tUs: nowUs } : draft.base;
}

/** What one charge of a request found, as far as the request's decision goes. */
export interface ChargeFinding {
  readonly charge: Pick<Charge, "role">;
  readonly result: Pick<ChargeResult, "isOver">;
}

/**
 * Whether a request is denied by what its charges found: an enforce or settle charge is over, or it
 * has quota charges and all of them are.
 */
export function isRequestDenied(asks: readonly ChargeFinding[]): boolean {
  let quotaCount = 0;
  let quotaOverCount = 0;
  for (const { charge, result } of asks) {
    const denial = denialOf(charge.role);
    if (result.isOver && denial === "enforce") return true;
    if (denial !== "quota") continue;
    quotaCount += 1;
    if (result.isOver) quotaOverCount += 1;
  }
  return quotaCount > 0 && quotaOverCount === quotaCount;
}

/**
 * Takes back what a denied request must not charge. What was over keeps the bucket it met, with the
 * charges before it: it says when all of them fit. The others say what they leave.
 */
function withdraw(asks: readonly Ask[], drafts: readonly Draft[], nowUs: number): void {
  for (const draft of drafts) {
    draft.level = draft.levelNow;
    draft.isTouched = false;
  }
  for (const ask of asks) {
    const { charge, draft } = ask;
    const isKept = charge.isRefund || isSettled(charge.role);
    const { isOver } = ask.result;
    if (isKept) ask.result = { ...evaluate(charge, draft, nowUs), isOver };
    else if (!isOver) ask.result = { isOver, bucket: draftBucket(draft, nowUs) };
  }
}

function commit(draft: Draft, surroundings: Surroundings): void {
  const { charge, isTouched, isRewritten, lastKey } = draft;
  if (!isTouched && !isRewritten) return;
  const bucket = draftBucket(draft, surroundings.nowUs);
  store(charge, bucket, surroundings);
  if (isTouched && lastKey !== undefined) store({ ...charge, key: lastKey }, bucket, surroundings);
}

/** Keeps a bucket until it has drained. */
function store(charge: Charge, bucket: Bucket, { table, nowUs }: Surroundings): void {
  // A limit that blocks everything holds nothing: what it finds, others stored and may still need.
  if (charge.hits === 0) return;
  const timeToFullUs = bucketTimeToFullUs(charge, bucket, nowUs) ?? 0;
  if (timeToFullUs > 0) table.set(charge.key, bucket, timeToFullUs);
  else table.delete(charge.key);
}
