import type { Bucket, Charge } from "../../src/core/limits/bucket.js";
import { add, type Fraction, fraction, isAbove, least, most, subtract } from "./fraction.js";

/** Levels of the law are whole multiples of this part of a hit. */
export const unit = fraction(1, 2 ** 20);

const zero = fraction(0);

/** What the definition keeps of a key. */
interface ModelBucket {
  readonly level: Fraction;
  readonly tUs: number;
  /** How many units the law's level may lie above the exact one: one a write. */
  readonly slackUnits: number;
}

/** A key's exact level inside one request. */
interface ModelDraft {
  readonly levelNow: Fraction;
  readonly slackUnits: number;
  level: Fraction;
  /** Whether a charge changed the level, even if another changed it back. */
  isTouched: boolean;
}

/** What a charge must have found. */
export interface ModelResult {
  readonly isOver: boolean;
  /** The level now that its bucket must tell; the law's is up to `slackUnits` above. */
  readonly level: Fraction;
  readonly slackUnits: number;
}

/** What a request must have met. */
export interface ModelDecision {
  readonly isDenied: boolean;
  readonly results: readonly ModelResult[];
}

/**
 * The definition of the law in exact fractions, written from its description: a leaky bucket whose
 * level drains continuously, and all or nothing over the charges of a request.
 *
 * Exact and rounded state would part at the first answer that rounding turned, so the model takes
 * the law's answer where the exact level is within the allowed rounding of the line, and throws
 * where the answer is plainly wrong. It allows no rounding in favour of a caller.
 */
export class GcraModel {
  readonly #buckets = new Map<string, ModelBucket>();

  /** Decides and commits; `answers` are the law's, one a charge. */
  decide(charges: readonly Charge[], nowUs: number, answers: readonly boolean[]): ModelDecision {
    const drafts = this.#draftsOf(charges, nowUs);
    const met = charges.map((charge, i) => {
      const draft = draftOf(drafts, charge);
      const isOver = answerOf(charge, draft, answers[i] === true);
      if (!isOver || isSettled(charge.role)) take(charge, draft);
      return { isOver, level: draft.level, slackUnits: draft.slackUnits };
    });
    const isDenied = isRequestDenied(charges, met);
    const results = isDenied ? withdrawn(charges, met, drafts) : met;
    this.#commit(charges, drafts, nowUs);
    return { isDenied, results };
  }

  /** Throws when a stored bucket is not the exact one rounded up within its slack. */
  compareStored(charge: Charge, stored: Bucket | undefined, nowUs: number): void {
    const exact = this.#buckets.get(charge.key);
    const level = exact === undefined ? zero : drained(charge, exact, nowUs);
    const rounded =
      stored === undefined
        ? zero
        : drained(charge, { level: units(stored.level), tUs: stored.tUs }, nowUs);
    if (exact === undefined || stored === undefined) {
      assertWithin(rounded, { level, slackUnits: exact?.slackUnits ?? 0 });
      this.#buckets.delete(charge.key);
      return;
    }
    if (isStillFullDebt(charge, stored, exact.tUs)) {
      const { slackUnits } = exact;
      this.#buckets.set(charge.key, { level: units(stored.level), tUs: stored.tUs, slackUnits });
    } else {
      assertWithin(rounded, { level, slackUnits: exact.slackUnits });
    }
  }

  /** The exact level now. */
  level(charge: Charge, nowUs: number): Fraction {
    const bucket = this.#buckets.get(charge.key);
    return bucket === undefined ? zero : drained(charge, bucket, nowUs);
  }

  #draftsOf(charges: readonly Charge[], nowUs: number): Map<string, ModelDraft> {
    const drafts = new Map<string, ModelDraft>();
    for (const charge of charges) {
      const levelNow = this.level(charge, nowUs);
      const slackUnits = (this.#buckets.get(charge.key)?.slackUnits ?? 0) + 1;
      drafts.set(charge.key, { levelNow, slackUnits, level: levelNow, isTouched: false });
    }
    return drafts;
  }

  #commit(charges: readonly Charge[], drafts: Map<string, ModelDraft>, nowUs: number): void {
    for (const charge of charges) {
      // Where nothing drains nothing is stored, and what others stored is left alone.
      if (charge.hits === 0) continue;
      const { level, isTouched, slackUnits } = draftOf(drafts, charge);
      const old = this.#buckets.get(charge.key);
      if (isTouched) {
        this.#buckets.set(charge.key, { level, tUs: nowUs, slackUnits });
      } else if (old !== undefined) {
        this.#buckets.set(charge.key, { ...old, tUs: Math.min(old.tUs, nowUs) });
      }
    }
  }
}

/** Throws unless `rounded` is `exact`, rounded up by no more than its slack. */
export function assertWithin(
  rounded: Fraction,
  exact: Pick<ModelResult, "level" | "slackUnits">,
): void {
  const high = add(exact.level, slack(exact.slackUnits));
  if (isAbove(exact.level, rounded))
    throw new Error(`level ${text(rounded)} below ${text(exact.level)}`);
  if (isAbove(rounded, high)) throw new Error(`level ${text(rounded)} above ${text(high)}`);
}

/** A level in the law's units as hits. */
export function units(level: number): Fraction {
  return fraction(level, 2 ** 20);
}

/** The exact level: what was there, less elapsed * rate, never below empty. */
function drained(
  charge: Charge,
  { level, tUs }: Pick<ModelBucket, "level" | "tUs">,
  nowUs: number,
): Fraction {
  const elapsedUs = Math.max(0, nowUs - tUs);
  const gone = fraction(BigInt(elapsedUs) * BigInt(charge.hits), charge.periodUs);
  return most(zero, subtract(level, gone));
}

/** Whether the charge is over; the law's answer inside the slack, an error for a wrong answer. */
function answerOf(charge: Charge, draft: ModelDraft, answer: boolean): boolean {
  if (charge.isRefund) {
    if (answer) throw new Error("refused a refund");
    return false;
  }
  const peeked = charge.peekExhausted ? 1 : 0;
  const hits = fraction(charge.cost === 0 ? peeked : charge.cost);
  const burst = fraction(charge.burst);
  const wanted = add(draft.level, hits);
  const wantedMost = add(wanted, slack(draft.slackUnits));
  if (isAbove(wanted, burst) && !answer) throw new Error("admitted, although over");
  if (!isAbove(wantedMost, burst) && answer) throw new Error("over, although it fits");
  return answer;
}

/**
 * A settle charge that finds the bucket full of debt but for less than a unit changes nothing: the
 * bucket stays as it was stored, and the model follows.
 */
function isStillFullDebt(charge: Charge, stored: Bucket, nowUs: number): boolean {
  if (!isSettled(charge.role) || stored.tUs === nowUs) return false;
  const full = fraction(2 * charge.burst);
  const level = drained(charge, { level: units(stored.level), tUs: stored.tUs }, nowUs);
  return !isAbove(level, full) && isAbove(add(level, unit), full);
}

function take(charge: Charge, draft: ModelDraft): void {
  const level = charged(charge, draft.level);
  if (!isAbove(level, draft.level) && !isAbove(draft.level, level)) return;
  draft.level = level;
  draft.isTouched = true;
}

/** The level after a charge that is taken. */
function charged(charge: Charge, level: Fraction): Fraction {
  const cost = fraction(charge.cost);
  if (charge.isRefund) return most(zero, subtract(level, cost));
  if (isSettled(charge.role)) {
    return most(level, least(add(level, cost), fraction(2 * charge.burst)));
  }
  return add(level, cost);
}

function isRequestDenied(charges: readonly Charge[], met: readonly ModelResult[]): boolean {
  const overOf = (roles: readonly Charge["role"][]): readonly boolean[] =>
    met.filter((_, i) => roles.some((role) => charges[i]?.role === role)).map((one) => one.isOver);
  const quotas = overOf(["quota", "quotaSettle"]);
  return (
    overOf(["enforce", "settle"]).includes(true) || (quotas.length > 0 && !quotas.includes(false))
  );
}

/** The results of a denied request, whose drafts keep settle charges and refunds alone. */
function withdrawn(
  charges: readonly Charge[],
  met: readonly ModelResult[],
  drafts: Map<string, ModelDraft>,
): readonly ModelResult[] {
  for (const draft of drafts.values()) {
    draft.level = draft.levelNow;
    draft.isTouched = false;
  }
  return charges.map((charge, i) => {
    const draft = draftOf(drafts, charge);
    const isKept = isSettled(charge.role) || charge.isRefund;
    if (isKept) take(charge, draft);
    const isOver = met[i]?.isOver === true;
    const metLevel = met[i]?.level ?? zero;
    const level = isOver && !isKept ? metLevel : draft.level;
    return { isOver, level, slackUnits: draft.slackUnits };
  });
}

function isSettled(role: Charge["role"]): boolean {
  return ["settle", "shadowSettle", "quotaSettle"].includes(role);
}

function draftOf(drafts: Map<string, ModelDraft>, charge: Charge): ModelDraft {
  const draft = drafts.get(charge.key);
  if (draft === undefined) throw new Error("every charge has a draft");
  return draft;
}

function slack(slackUnits: number): Fraction {
  return fraction(slackUnits, 2 ** 20);
}

function text({ numerator, denominator }: Fraction): string {
  return `${numerator}/${denominator}`;
}
