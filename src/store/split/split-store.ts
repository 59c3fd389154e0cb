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
  /** From 1. Each is closed with the whole. */
  readonly parts: readonly SplitPart[];
  /**
   * The part that a charge falls under: by its keys and its period, never by anything else. Of a
   * carried limit both keys are in one part.
   */
  readonly partOf: (charge: Pick<Charge, "key" | "lastKey" | "periodUs">) => number;
  /** The parts that may hold a key whose limit is not known. */
  readonly partsOfKey: (key: LimitKey) => readonly number[];
  readonly clock: Clock;
}

/**
 * While some part has answered within this time, a batch whose parts all failed is answered request
 * by request and does not reject: the store is there, and whoever counts its failures must not give
 * it up for the parts that live.
 */
const livelyMs = 1_000;

/**
 * One `LimitStore` over several that hold a part of the keys each: the hash tags of a cluster, and
 * a second store for limits by the second.
 *
 * A batch goes to all its parts at once, in order within each. A part that fails takes with it only
 * the requests that need it; one that does not answer in time is soon left alone for a while (see
 * `SplitGuard`). All or nothing over several parts is what `SplitRequest` says.
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

  /** Rejects only when every part that it needed failed, and none has answered for a second. */
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

  /** Where several parts may hold the key, the first that does. */
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

  /** Resolves when every part would decide a charge now. */
  async ping(deadlineMs: number): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.ping(deadlineMs)));
  }

  /** Resolves when every part may do for us what it is asked to. */
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

  /** Asks each part once for all that falls to it; answers why parts failed. */
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

  /** A part that cannot be told keeps the charges: strict for a while, never too generous. */
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
 * Probes of a part come more often than those of the whole store: else one that looks whether the
 * store is back might find a part that is not yet to be asked, and take it for a failure.
 */
const partBreakerOptions: StoreBreakerOptions = { ...defaultBreakerOptions, probeAfterMsMax: 250 };

/**
 * A part with a breaker of its own, so that one node that hangs costs the requests which need it a
 * budget for a tenth of a second, and not until its connection is given up.
 *
 * Only time-outs count. Whatever a part says at once costs nobody any time, and while a slot moves
 * it says of some requests that they cannot be decided, and decides the others.
 */
export class SplitGuard implements SplitPart {
  readonly #part: SplitPart;
  readonly #clock: Clock;
  readonly #breaker = new Breaker(partBreakerOptions);

  constructor(part: SplitPart, clock: Clock) {
    this.#part = part;
    this.#clock = clock;
  }

  /** Rejects with STORE_CIRCUIT_OPEN at once while the part is left alone; nothing is charged. */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#guarded(
      () => this.#part.take(batch, deadlineMs),
      (outcomes) => outcomes.every((one) => one.kind === "failed" && one.code === "STORE_TIMEOUT"),
    );
  }

  /** As `take`: while the part is left alone, nothing is given back. */
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
