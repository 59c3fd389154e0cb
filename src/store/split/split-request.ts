import { assert } from "../../core/base/errors.js";
import type { Bucket, Charge } from "../../core/limits/bucket.js";
import type { Compensation } from "../../core/limits/compensation.js";
import {
  type BucketTable,
  type ChargeResult,
  decideRepeated,
  isRequestDenied,
} from "../../core/limits/gcra.js";
import { denialOf, isSettled, type LimitKey, settledRole } from "../../core/limits/limit.js";
import type { StoreOutcome, StoreRequest, StoreResult } from "../limit-store.js";
import type { GivenBack } from "./split-part.js";

/** The charges of a request that belong to one part, in the request's order. */
interface Share {
  readonly part: number;
  /** Index of each charge in the request. */
  readonly positions: readonly number[];
  readonly charges: readonly Charge[];
}

/** A request to one part for one request, and the handler of its answer. */
export interface PartRequest {
  readonly part: number;
  readonly request: StoreRequest;
  readonly note: (outcome: StoreOutcome) => void;
}

/** Charges of one request that one part must undo. */
export interface PartRefund {
  readonly part: number;
  readonly compensations: readonly Compensation[];
  /** Not called if the answer is lost, which counts as if nothing had been undone. */
  readonly note: (givenBack: GivenBack) => void;
}

/** Charges that were sent to one part in the second step, and the result. */
interface SentShare {
  readonly share: Share;
  readonly multiplicity: number;
  result?: StoreResult;
}

/**
 * One request with charges in several parts. It is peeked in all of them, then charged in all of
 * them, then undone in some if another part denied after all. The owner of the parts calls, in this
 * order: `peekAsks`, `chargeAsks`, `refunds`, `outcome`.
 *
 * - Granted: every part has made its charges that fit, each at its own time.
 * - Denied: the peek denied it, and nothing was charged; or a part denied it later, because another
 *   request was faster, and the other parts were told to undo their charges. What drained meanwhile
 *   is not given back, and others saw the charge meanwhile: briefly strict, never too generous.
 * - A reply was lost. In the peek: nothing is charged. In the charge: the request fails, and what
 *   was charged stays (it may be admitted by `on_store_failure`). In the refund: the request is
 *   denied, and at most its cost stays charged in that part.
 * - Settle charges and refunds of callers are sent once, in the second step, whatever is decided.
 *   Quota charges are sent as shadow charges: only this class knows whether all of them are over.
 */
export class SplitRequest {
  readonly #request: StoreRequest;
  readonly #shares: readonly Share[];
  readonly #peeked: StoreResult[] = [];
  #sent: readonly SentShare[] = [];
  #failure: Extract<StoreOutcome, { kind: "failed" }> | undefined;
  /** The algorithm's decision on the peeked buckets. */
  #foreseen: StoreResult | undefined;
  #grantedCount = 0;
  readonly #results: ChargeResult[] = [];
  #nowUs = 0;

  /** @param parts the part of each charge, in order */
  constructor(request: StoreRequest, parts: readonly number[]) {
    this.#request = request;
    this.#shares = sharesOf(request, parts);
  }

  /** First step: reads every bucket without charging. */
  peekAsks(): readonly PartRequest[] {
    return this.#shares.map(({ part, charges }, i) => ({
      part,
      request: {
        charges: charges.map((charge) => ({
          ...charge,
          cost: 0,
          isRefund: false,
          peekExhausted: false,
        })),
        multiplicity: 1,
      },
      note: (outcome) => {
        if (outcome.kind === "decided") this.#peeked[i] = outcome.result;
        else this.#failure ??= outcome;
      },
    }));
  }

  /** Second step: charges what the algorithm grants on the peeked buckets. */
  chargeAsks(): readonly PartRequest[] {
    if (this.#failure !== undefined) return [];
    const foreseen = this.#foresee();
    const { grantedCount: multiplicity } = foreseen;
    this.#foreseen = foreseen;
    this.#sent = this.#shares.flatMap((share) => {
      const sent = multiplicity > 0 ? shadowQuotas(share) : withoutTaking(share);
      return sent === undefined ? [] : [{ share: sent, multiplicity: Math.max(1, multiplicity) }];
    });
    return this.#sent.map((sent) => ({
      part: sent.share.part,
      request: { charges: sent.share.charges, multiplicity: sent.multiplicity },
      note: (outcome) => {
        if (outcome.kind === "decided") sent.result = outcome.result;
        else this.#failure ??= outcome;
      },
    }));
  }

  /** Third step: undoes charges made in vain. Must be called once, after all charge answers. */
  refunds(): readonly PartRefund[] {
    if (this.#failure !== undefined || this.#foreseen === undefined) return [];
    this.#settleResults(this.#foreseen);
    if (this.#foreseen.grantedCount === 0) return [];
    return this.#sent.flatMap((sent) => {
      const { share, result } = sent;
      assert(result !== undefined, "every charge is answered");
      const inVainCount = result.grantedCount - this.#grantedCount;
      if (inVainCount <= 0) return [];
      const positions: number[] = [];
      const compensations = share.charges.flatMap((charge, i): Compensation[] => {
        if (!isTaken(charge) || (sent.multiplicity === 1 && result.results[i]?.isOver)) return [];
        positions.push(share.positions[i] ?? 0);
        const { key, hits, periodUs, windows } = charge;
        const cost = charge.cost * inVainCount;
        return [{ key, hits, periodUs, windows, cost, chargedUs: result.nowUs }];
      });
      if (compensations.length === 0) return [];
      const note = (givenBack: GivenBack): void => this.#noteGivenBack(positions, givenBack);
      return [{ part: share.part, compensations, note }];
    });
  }

  /** Returns the final answer. */
  outcome(): StoreOutcome {
    if (this.#failure !== undefined) return this.#failure;
    const grantedCount = this.#grantedCount;
    return {
      kind: "decided",
      result: { grantedCount, results: this.#results, nowUs: this.#nowUs },
    };
  }

  /** Decides on the peeked buckets, moved to one clock, since the parts' clocks may differ. */
  #foresee(): StoreResult {
    const nowUs = latestUs(this.#peeked);
    const buckets = new Map<LimitKey, Bucket>();
    this.#shares.forEach(({ charges }, i) => {
      const peeked = this.#peeked[i];
      assert(peeked !== undefined, "every peek is answered");
      charges.forEach(({ key }, j) => {
        const bucket = peeked.results[j]?.bucket;
        if (bucket !== undefined && bucket.level > 0) {
          buckets.set(key, moved(bucket, peeked.nowUs, nowUs));
        }
      });
    });
    return { ...decideRepeated(this.#request, readOnly(buckets), nowUs), nowUs };
  }

  #settleResults(foreseen: StoreResult): void {
    const { charges, multiplicity } = this.#request;
    const answers = this.#sent.flatMap(({ result }) => result ?? []);
    this.#nowUs = latestUs([foreseen, ...answers]);
    this.#results.push(...foreseen.results.map((one) => movedResult(one, foreseen, this.#nowUs)));
    this.#grantedCount = Math.min(
      foreseen.grantedCount,
      ...(foreseen.grantedCount > 0 ? answers.map(({ grantedCount }) => grantedCount) : []),
    );
    const isForeseen = this.#grantedCount === foreseen.grantedCount;
    for (const { share, result } of this.#sent) {
      assert(result !== undefined, "every charge is answered");
      // If the peek determined the count, only it knows what the next request would meet.
      const isKept = isForeseen && foreseen.grantedCount < multiplicity;
      share.positions.forEach((position, i) => {
        const answer = result.results[i];
        const before = this.#results[position];
        assert(answer !== undefined && before !== undefined, "one result a charge");
        const { bucket } = movedResult(answer, result, this.#nowUs);
        const isOver = isKept
          ? before.isOver
          : answer.isOver && (multiplicity === 1 || result.grantedCount === this.#grantedCount);
        this.#results[position] = { isOver, bucket };
      });
    }
    if (multiplicity > 1 || foreseen.grantedCount === 0) return;
    const findings = charges.map((charge, i) => ({
      charge,
      result: { isOver: this.#results[i]?.isOver ?? false },
    }));
    if (isRequestDenied(findings)) this.#grantedCount = 0;
  }

  #noteGivenBack(positions: readonly number[], { buckets, nowUs }: GivenBack): void {
    positions.forEach((position, i) => {
      const bucket = buckets[i];
      const before = this.#results[position];
      assert(bucket !== undefined && before !== undefined, "one bucket a compensation");
      this.#results[position] = { ...before, bucket: moved(bucket, nowUs, this.#nowUs) };
    });
  }
}

function sharesOf({ charges }: StoreRequest, parts: readonly number[]): readonly Share[] {
  const shares = new Map<number, { part: number; positions: number[]; charges: Charge[] }>();
  charges.forEach((charge, position) => {
    const part = parts[position] ?? 0;
    const share = shares.get(part) ?? { part, positions: [], charges: [] };
    shares.set(part, share);
    share.positions.push(position);
    share.charges.push(charge);
  });
  return [...shares.values()];
}

function shadowQuotas(share: Share): Share {
  const charges = share.charges.map((charge): Charge => {
    if (denialOf(charge.role) !== "quota") return charge;
    return { ...charge, role: isSettled(charge.role) ? settledRole("shadow") : "shadow" };
  });
  return { ...share, charges };
}

/** Returns what a denied request still stores: settle charges and refunds, if there are any. */
function withoutTaking({ part, positions, charges }: Share): Share | undefined {
  const kept = charges.flatMap((charge, i) => (isTaken(charge) || charge.cost === 0 ? [] : [i]));
  if (kept.length === 0) return undefined;
  return {
    part,
    positions: kept.flatMap((i) => positions[i] ?? []),
    charges: kept.flatMap((i) => charges[i] ?? []),
  };
}

/** Reports whether a charge takes hits only if the request is granted. */
function isTaken({ role, isRefund, cost }: Charge): boolean {
  return cost > 0 && !isRefund && !isSettled(role);
}

function latestUs(results: readonly { readonly nowUs: number }[]): number {
  return results.reduce((latest, { nowUs }) => Math.max(latest, nowUs), 0);
}

/** Converts a bucket to a clock that shows `toUs` when the bucket's own clock shows `fromUs`. */
function moved(bucket: Bucket, fromUs: number, toUs: number): Bucket {
  return { level: bucket.level, tUs: bucket.tUs + (toUs - fromUs) };
}

function movedResult(
  { isOver, bucket }: ChargeResult,
  from: { readonly nowUs: number },
  toUs: number,
): ChargeResult {
  return { isOver, bucket: moved(bucket, from.nowUs, toUs) };
}

function readOnly(buckets: ReadonlyMap<LimitKey, Bucket>): BucketTable {
  return { get: (key) => buckets.get(key), set: ignore, delete: ignore };
}

function ignore(): void {
  // The parts write their buckets themselves when they are charged.
}
