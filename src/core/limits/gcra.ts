import {
  type Bucket,
  bucketTimeToFullUs,
  type Charge,
  capacityUnits,
  levelAt,
  pastBucket,
  unitsPerHit,
} from "./bucket.js";
import { denialOf, isSettled, type LimitKey } from "./limit.js";

/**
 * GCRA as a continuous-state leaky bucket. A bucket has a `level` (the used hits) at a point in
 * time. It drains at the rate of the limit, and a charge fits if the level stays within the burst.
 *
 * Guarantee: in any interval of length t, a key admits at most burst + floor(t * rate) hits, net of
 * refunds. Rounding always favors denial, by less than one part in 2^20 of a hit per charge. If
 * limits differ, for example while an edit is propagating to all replicas, burst and rate are the
 * largest of those that decided in the interval.
 *
 * Proof: let A be the level of an ideal bucket that is empty at the start of the interval, is
 * charged with what the interval admits, and drains at its largest rate. The stored level is never
 * below A: both are charged the same, the stored one drains no faster, and it is only deleted when
 * its writer would consider it empty, at a rate no larger than A's. An admission leaves the stored
 * level, and therefore A, within a burst of the interval. The admitted hits are what has drained
 * from A and what A holds.
 *
 * So a decision must not lower a level except by draining and refunds, even if the level is far
 * above the burst of the current limit: another replica may know a larger burst, and would admit
 * again what was dropped.
 *
 * Source: ITU-T I.371, annex A, the continuous-state leaky bucket algorithm.
 */

/** The result of one charge. */
export interface ChargeResult {
  readonly isOver: boolean;
  /**
   * The bucket after the charge if it was committed, otherwise as found. It determines what remains
   * and when more is available.
   */
  readonly bucket: Bucket;
}

/** The decision for one request, which covers all of its charges or none. */
export interface RequestResult {
  readonly isDenied: boolean;
  /** One per charge, in the order of the charges. */
  readonly results: readonly ChargeResult[];
}

/** A request that is repeated several times at the same moment. */
export interface RepeatedRequest {
  readonly charges: readonly Charge[];
  /** 1 to `multiplicityMax`; more than 1 only if `isRepeatable` returns true for the charges. */
  readonly multiplicity: number;
}

/** The decision for a repeated request. */
export interface RepeatedResult {
  /** The number of granted requests, 0 to the multiplicity. The first ones are granted. */
  readonly grantedCount: number;
  /**
   * One per charge: the bucket after all granted requests, and whether the charge is over for the
   * first denied request. None is over if all were granted. The j-th of k granted requests saw this
   * level minus (k - j) times its cost.
   */
  readonly results: readonly ChargeResult[];
}

/** Maximum multiplicity of a repeated request. */
export const multiplicityMax = 4_294_967_295;

/** A table of buckets. A missing bucket is empty. */
export interface BucketTable {
  get(key: LimitKey): Bucket | undefined;
  /** Stores a bucket until it has drained, `timeToFullUs` from now. */
  set(key: LimitKey, bucket: Bucket, timeToFullUs: number): void;
  /** Deletes an empty bucket. */
  delete(key: LimitKey): void;
}

/** The state of a key's bucket during a decision, shared by all charges on that key. */
interface Draft {
  /** The first charge on the key. */
  readonly charge: Charge;
  /** The stored bucket, not in the future. A denied check leaves it unchanged. */
  readonly base: Bucket;
  /**
   * Whether the bucket is written back even if nothing is charged, because the stored time was in
   * the future or the base comes from the last carried limit.
   */
  readonly isRewritten: boolean;
  /** The charge's, unless an earlier draft has the same one. */
  readonly lastKey: LimitKey | undefined;
  /** The level of the base after draining until now. */
  readonly levelNow: number;
  /** `levelNow` plus what has been charged so far. */
  level: number;
  /** Whether a charge has changed `level`. If not, `base` still applies. */
  isTouched: boolean;
}

/** A charge, the bucket that it applies to, and its result. */
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
 * Decides one request over all of its charges, and writes the resulting buckets to the table.
 *
 * Charges are evaluated in order on tentative state, so a key that occurs twice counts twice. The
 * request is denied if an enforce or settle charge is over, or if it has quota charges and all of
 * them are over. If it is allowed, every charge that fits is committed. If it is denied, only
 * settle charges and refunds are. A denied check writes nothing, except a bucket whose time was in
 * the future, and the initial state of a carried limit (`Charge.lastKey`).
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
 * Whether a denial of the request remains valid until something drains: every charge enforces, has
 * a cost, and has its own key, so that a denied request charges nothing.
 */
export function isPlainRequest(charges: readonly Charge[]): boolean {
  if (!charges.every(isPlain)) return false;
  return charges.length < 2 || new Set(charges.map(({ key }) => key)).size === charges.length;
}

/**
 * Whether a request may be decided with a multiplicity: it is plain, and its buckets drain if they
 * hold anything. Each granted request then raises each level by its cost, and all requests after
 * the first denied one are denied too. Carried limits are decided one by one.
 */
export function isRepeatable(charges: readonly Charge[]): boolean {
  for (const { hits, burst, lastKey } of charges) {
    if (lastKey !== undefined || (hits === 0 && burst > 0)) return false;
  }
  return isPlainRequest(charges);
}

/**
 * Decides `multiplicity` identical requests in constant time, with the same result as calling
 * `decideRequest` for each at one moment. The number granted is the smallest floor((burst - level)
 * / cost) of all buckets.
 *
 * Example: with burst 10, 3.2 used hits, cost 2 and multiplicity 5, 3 are granted and 9.2 hits
 * used.
 */
export function decideRepeated(
  { charges, multiplicity }: RepeatedRequest,
  table: BucketTable,
  nowUs: number,
): RepeatedResult {
  const [first] = charges;
  if (first !== undefined && charges.length === 1 && isSimple(first)) {
    return decideOne(first, multiplicity, { table, nowUs });
  }
  if (areSimple(charges)) return decideSimple({ charges, multiplicity }, { table, nowUs });
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

/** Whether a charge is plain, and its bucket is independent of other limits. */
function isSimple(charge: Charge): boolean {
  return isPlain(charge) && charge.lastKey === undefined;
}

/** Maximum number of charges whose keys are compared with each other. */
const simpleChargesMax = 8;

/** Whether all charges are simple and have different keys. */
function areSimple(charges: readonly Charge[]): boolean {
  if (charges.length > simpleChargesMax) return false;
  for (let i = 0; i < charges.length; i += 1) {
    const charge = charges[i];
    if (charge === undefined || !isSimple(charge)) return false;
    for (let j = 0; j < i; j += 1) if (charges[j]?.key === charge.key) return false;
  }
  return true;
}

/** Decides a request with one simple charge, the most frequent kind, without drafts. */
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

/** Decides a request with some simple charges on different keys, without drafts. */
function decideSimple(
  { charges, multiplicity }: RepeatedRequest,
  { table, nowUs }: Surroundings,
): RepeatedResult {
  // Uses loops and computes levels twice: functions and arrays would allocate half as much again.
  const results = new Array<{ isOver: boolean; bucket: Bucket }>(charges.length);
  let grantedCount = multiplicity;
  for (let i = 0; i < charges.length; i += 1) {
    const charge = charges[i];
    if (charge === undefined) continue;
    const bucket = pastBucket(table.get(charge.key), nowUs);
    grantedCount = Math.min(grantedCount, fittingCount(charge, levelAt(charge, bucket, nowUs)));
    results[i] = { isOver: false, bucket };
  }
  for (let i = 0; i < charges.length; i += 1) {
    const charge = charges[i];
    const result = results[i];
    if (charge === undefined || result === undefined) continue;
    const granted = grantedCount * charge.cost * unitsPerHit;
    const level = levelAt(charge, result.bucket, nowUs) + granted;
    result.isOver = grantedCount < multiplicity && fittingCount(charge, level) === 0;
    if (grantedCount > 0) result.bucket = { level, tUs: nowUs };
    // If a bucket's time was in the future, its new time is stored even if nothing is granted.
    if (result.bucket.tUs === nowUs) store(charge, result.bucket, { table, nowUs });
  }
  return { grantedCount, results };
}

/**
 * Returns how often the cost fits above a level, rounded down; 0 above the capacity. The quotient
 * of integers below 2^53 is never rounded up to an integer, so the floor is exact.
 */
function fittingCount(charge: Charge, level: number): number {
  const free = capacityUnits(charge) - level;
  return free <= 0 ? 0 : Math.floor(free / (charge.cost * unitsPerHit));
}

/** Returns the draft of the charge's key. The first charge on a key reads its bucket. */
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

/** Returns the key, unless an earlier draft has the same one. */
function unreportedKey(lastKey: LimitKey, drafts: readonly Draft[]): LimitKey | undefined {
  return drafts.some((earlier) => earlier.lastKey === lastKey) ? undefined : lastKey;
}

/**
 * Returns the level of the limit that was carried last, drained at the rate of this one, at most
 * its burst. A limit that is raised or lowered thus keeps its usage. The level is taken over once,
 * even by a denied request, and drains from then on. Otherwise, a small limit would be denied for
 * as long as a large one is used beside it.
 */
function carriedLevel(charge: Charge, lastKey: LimitKey, surroundings: Surroundings): number {
  const { table, nowUs } = surroundings;
  const stored = table.get(lastKey);
  const last = pastBucket(stored, nowUs);
  if (stored !== undefined && last !== stored)
    store({ ...charge, key: lastKey }, last, surroundings);
  return Math.min(levelAt(charge, last, nowUs), charge.burst * unitsPerHit);
}

/** Evaluates one charge on the draft, which is changed as if the request were allowed. */
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
  const isOver = draft.level + cost > capacityUnits(charge);
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

/** The part of a charge's result that the decision of the request depends on. */
export interface ChargeFinding {
  readonly charge: Pick<Charge, "role">;
  readonly result: Pick<ChargeResult, "isOver">;
}

/**
 * Whether a request is denied: an enforce or settle charge is over, or it has quota charges and all
 * of them are over.
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
 * Reverts what a denied request must not charge. A charge that is over keeps the bucket it found,
 * including the charges before it, which determines when all of them fit. The others report the
 * resulting bucket.
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

/** Stores a bucket until it has drained. */
function store(charge: Charge, bucket: Bucket, { table, nowUs }: Surroundings): void {
  // A limit of 0 hits holds nothing. The bucket belongs to other limits, which may still need it.
  if (charge.hits === 0) return;
  const timeToFullUs = bucketTimeToFullUs(charge, bucket, nowUs) ?? 0;
  if (timeToFullUs > 0) table.set(charge.key, bucket, timeToFullUs);
  else table.delete(charge.key);
}
