import {
  Breaker,
  defaultBreakerOptions,
  type StoreBreakerOptions,
} from "../../core/base/breaker.js";
import type { Clock } from "../../core/base/clock.js";
import { assert, type ErrorCode, isServiceError, ServiceError } from "../../core/base/errors.js";
import type { Charge } from "../../core/limits/bucket.js";
import type { Compensation } from "../../core/limits/compensation.js";
import type { LimitKey } from "../../core/limits/limit.js";
import { assertBatch } from "../batch.js";
import type { LimitStore, StoredBucket, StoreOutcome, StoreRequest } from "../limit-store.js";
import type { GivenBack, SplitPart } from "./split-part.js";
import { type PartRefund, type PartRequest, SplitRequest } from "./split-request.js";

interface SplitStoreOptions {
  /** At least one. All are closed together with the store. */
  readonly parts: readonly SplitPart[];
  /**
   * Returns the part of a charge. Depends only on its keys and its period. Both keys of a carried
   * limit are in the same part.
   */
  readonly partOf: (charge: Pick<Charge, "key" | "lastKey" | "periodUs">) => number;
  /** Returns the parts that may hold a key whose limit is not known. */
  readonly partsOfKey: (key: LimitKey) => readonly number[];
  readonly clock: Clock;
}

/**
 * If a part has answered within this time, a batch whose parts all failed is answered request by
 * request and does not reject. The store is available, and a circuit breaker that counts its
 * failures must not open for the parts that work.
 */
const livelyMs = 1_000;

/**
 * One `LimitStore` over several stores that each hold a part of the keys: the hash tags of a
 * cluster, and a second store for per-second limits.
 *
 * A batch is sent to all its parts at the same time, in order within each. A failing part fails
 * only the requests that need it. A part that does not answer in time is soon not called for a
 * while (see `SplitGuard`). `SplitRequest` describes all-or-nothing decisions over several parts.
 */
export class SplitStore implements LimitStore {
  readonly #options: SplitStoreOptions;
  readonly #parts: readonly SplitPart[];
  #answeredMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: SplitStoreOptions) {
    this.#options = options;
    this.#parts = options.parts.map((part) => new SplitGuard(part, options.clock));
  }

  /** Rejects only if every part that it needed failed and no part has answered for a second. */
  async take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    if (this.#isClosed) throw new ServiceError("STORE_CLOSED");
    if (batch.length === 0) return [];
    assertBatch(batch);
    const outcomes: StoreOutcome[] = [];
    const split: { readonly at: number; readonly request: SplitRequest }[] = [];
    const asks = batch.flatMap((request, at): readonly PartRequest[] => {
      const parts = request.charges.map(this.#options.partOf);
      const part = parts[0] ?? 0;
      if (parts.every((other) => other === part)) {
        const note = (outcome: StoreOutcome): void => {
          outcomes[at] = outcome;
        };
        return [{ part, request, note }];
      }
      const whole = new SplitRequest(request, parts);
      split.push({ at, request: whole });
      return whole.peekAsks();
    });
    const failures = await this.#askAll(asks, deadlineMs);
    if (split.length > 0) {
      await this.#askAll(
        split.flatMap(({ request }) => request.chargeAsks()),
        deadlineMs,
      );
      await this.#giveBackAll(
        split.flatMap(({ request }) => request.refunds()),
        deadlineMs,
      );
      for (const { at, request } of split) outcomes[at] = request.outcome();
    }
    const [failure] = failures;
    if (failure !== undefined && this.#isGone(outcomes)) throw failure;
    return outcomes;
  }

  /** Returns the bucket from the first part that has it, if several may hold the key. */
  async peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    const parts = this.#options.partsOfKey(key).map((part) => this.#part(part));
    const found = await Promise.all(parts.map((part) => part.peek(key, deadlineMs)));
    return found.find((bucket) => bucket !== undefined);
  }

  async forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    const byPart = new Map<number, LimitKey[]>();
    for (const key of keys) {
      for (const part of this.#options.partsOfKey(key)) {
        const some = byPart.get(part);
        if (some === undefined) byPart.set(part, [key]);
        else some.push(key);
      }
    }
    const counts = await Promise.all(
      [...byPart].map(([part, some]) => this.#part(part).forget(some, deadlineMs)),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Resolves if every part can decide charges now. */
  async ping(deadlineMs: number): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.ping(deadlineMs)));
  }

  /** Resolves if every part permits all required commands. */
  async verify(deadlineMs: number): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.verify(deadlineMs)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#parts.map((part) => part.close()));
  }

  #part(index: number): SplitPart {
    const part = this.#parts[index];
    assert(part !== undefined, "a part for every key");
    return part;
  }

  #isGone(outcomes: readonly StoreOutcome[]): boolean {
    if (outcomes.some(({ kind }) => kind === "decided")) return false;
    return this.#options.clock.monotonicMs() - this.#answeredMs >= livelyMs;
  }

  /** Calls each part once with all its requests. Returns the errors of the parts that failed. */
  async #askAll(
    asks: readonly PartRequest[],
    deadlineMs: number,
  ): Promise<readonly ServiceError[]> {
    const failures: ServiceError[] = [];
    const answers: Promise<void>[] = [];
    for (const [part, own] of grouped(asks)) {
      const requests = own.map(({ request }) => request);
      const answer = this.#part(part).take(requests, deadlineMs);
      answers.push(this.#note(answer, own, failures));
    }
    await Promise.all(answers);
    return failures;
  }

  async #note(
    answer: Promise<readonly StoreOutcome[]>,
    asks: readonly PartRequest[],
    failures: ServiceError[],
  ): Promise<void> {
    try {
      const outcomes = await answer;
      assert(outcomes.length === asks.length, "one outcome a request");
      this.#answeredMs = this.#options.clock.monotonicMs();
      for (const [i, { note }] of asks.entries()) note(outcomes[i] ?? failed("INTERNAL"));
    } catch (thrown) {
      if (!isServiceError(thrown)) throw thrown;
      failures.push(thrown);
      for (const { note } of asks) note(failed(thrown.code));
    }
  }

  /** Undoes charges. A part that cannot be reached keeps them: too strict, never too generous. */
  async #giveBackAll(refunds: readonly PartRefund[], deadlineMs: number): Promise<void> {
    const calls: Promise<void>[] = [];
    for (const [part, own] of grouped(refunds)) {
      const compensations = own.flatMap((refund) => refund.compensations);
      const call = this.#part(part).giveBack(compensations, deadlineMs);
      calls.push(call.then((givenBack) => noteGivenBack(own, givenBack), ignoreFailure));
    }
    await Promise.all(calls);
  }
}

function failed(code: ErrorCode): StoreOutcome {
  return { kind: "failed", code };
}

function ignoreFailure(thrown: unknown): void {
  if (!isServiceError(thrown)) throw thrown;
}

function noteGivenBack(refunds: readonly PartRefund[], { buckets, nowUs }: GivenBack): void {
  let at = 0;
  for (const { compensations, note } of refunds) {
    note({ buckets: buckets.slice(at, at + compensations.length), nowUs });
    at += compensations.length;
  }
}

function grouped<T extends { readonly part: number }>(all: readonly T[]): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const one of all) {
    const group = groups.get(one.part);
    if (group === undefined) groups.set(one.part, [one]);
    else group.push(one);
  }
  return groups;
}

/**
 * Parts are probed more often than the whole store. Otherwise a probe of the store might meet a
 * part whose breaker is still open, and count that as a failure.
 */
const partBreakerOptions: StoreBreakerOptions = { ...defaultBreakerOptions, probeAfterMsMax: 250 };

/**
 * A part with its own circuit breaker. If a node hangs, requests that need it wait until their
 * deadline for a tenth of a second only, and not until the connection is given up.
 *
 * Only time-outs count. An immediate error costs no time, and while a slot is being moved, a part
 * returns errors for some requests and decides the others.
 */
export class SplitGuard implements SplitPart {
  readonly #part: SplitPart;
  readonly #clock: Clock;
  readonly #breaker = new Breaker(partBreakerOptions);

  constructor(part: SplitPart, clock: Clock) {
    this.#part = part;
    this.#clock = clock;
  }

  /** Rejects with STORE_CIRCUIT_OPEN at once while the breaker is open; nothing is charged. */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#guarded(
      () => this.#part.take(batch, deadlineMs),
      (outcomes) => outcomes.every((one) => one.kind === "failed" && one.code === "STORE_TIMEOUT"),
    );
  }

  /** Like `take`: while the breaker is open, nothing is given back. */
  giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack> {
    return this.#guarded(
      () => this.#part.giveBack(compensations, deadlineMs),
      () => false,
    );
  }

  peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    return this.#part.peek(key, deadlineMs);
  }

  forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    return this.#part.forget(keys, deadlineMs);
  }

  ping(deadlineMs: number): Promise<void> {
    return this.#part.ping(deadlineMs);
  }

  verify(deadlineMs: number): Promise<void> {
    return this.#part.verify(deadlineMs);
  }

  close(): Promise<void> {
    return this.#part.close();
  }

  async #guarded<T>(ask: () => Promise<T>, isTimeout: (answer: T) => boolean): Promise<T> {
    if (!this.#breaker.admits(this.#clock.monotonicMs())) {
      throw new ServiceError("STORE_CIRCUIT_OPEN");
    }
    try {
      const answer = await ask();
      this.#note(isTimeout(answer));
      return answer;
    } catch (thrown) {
      this.#note(isServiceError(thrown) && thrown.code === "STORE_TIMEOUT");
      throw thrown;
    }
  }

  #note(isTimeout: boolean): void {
    if (isTimeout) this.#breaker.failed(this.#clock.monotonicMs());
    else this.#breaker.succeeded();
  }
}
