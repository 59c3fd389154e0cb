import type { Cancel, Clock, Random } from "../../core/base/clock.js";
import { type ErrorCode, ServiceError, toServiceError } from "../../core/base/errors.js";
import type { SignalUpdate } from "../../core/concurrency/signal-update.js";
import type { SignalReader, SignalReadings } from "./signal-readings.js";
import { SignalRegistry, type SignalRegistrySettings } from "./signal-registry.js";

/** How a source is polled. */
interface SignalPollerSettings extends SignalRegistrySettings {
  /** Poll interval, in milliseconds. */
  readonly everyMs: number;
  /** Timeout of a poll, at most `everyMs`, in milliseconds. */
  readonly timeoutMs: number;
}

/** Minimum time between two reports of a failure: a source may fail at every other poll. */
export const failureReportedMsMin = 10_000;

/** A state change of a source, for the log. */
export type SignalEvent =
  /** Polls have started to fail, or fail for another reason. */
  | { readonly kind: "signalFailing"; readonly code: ErrorCode; readonly detail: string }
  /** Its readings have expired. */
  | { readonly kind: "signalMissing"; readonly whenMissing: "min" | "max" }
  /** Polls succeed again. */
  | { readonly kind: "signalFound" };

interface SignalPollerParts {
  readonly reader: SignalReader;
  readonly settings: SignalPollerSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly onUpdate: (update: SignalUpdate) => void;
  readonly onEvent: (event: SignalEvent) => void;
}

/** The fraction of `everyMs` by which the polls of several replicas are spread. */
export const pollSpreadRatio = 0.1;

/**
 * Polls one source until `close`, for the first time at once. Only one poll is in progress at a
 * time, and none takes longer than the timeout, whatever the reader does.
 */
export class SignalPoller {
  readonly #parts: SignalPollerParts;
  readonly #registry: SignalRegistry;
  #cancel: Cancel = () => {};
  #isClosed = false;
  /** The failure that was reported, while it lasts. */
  #reportedFailure: ErrorCode | undefined;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #isMissing = false;
  #failure: ErrorCode | undefined;
  /** Resolves when the first poll has ended, successfully or not, or when polling was stopped. */
  readonly settled: Promise<void>;
  #settle: () => void = () => {};
  /** The number of polls by result: `ok`, or an error code. */
  readonly countByOutcome = new Map<ErrorCode | "ok", number>();

  constructor(parts: SignalPollerParts) {
    this.#parts = parts;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#registry = new SignalRegistry(parts.settings, parts.clock.monotonicMs());
    this.#poll();
  }

  /** Time since the last successful response, or since the start, in milliseconds. */
  ageMs(): number {
    return this.#registry.ageMs(this.#parts.clock.monotonicMs());
  }

  /** Whether the bound for missing readings applies. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Why the last poll failed. Undefined if it succeeded or none has ended. */
  get failure(): ErrorCode | undefined {
    return this.#failure;
  }

  /** Ignores a poll in progress. */
  close(): void {
    this.#isClosed = true;
    this.#settle();
    this.#cancel();
  }

  #poll(): void {
    const { clock, reader, settings } = this.#parts;
    const askedMs = clock.monotonicMs();
    let isOver = false;
    const end = (outcome: SignalReadings | ServiceError): void => {
      if (isOver || this.#isClosed) return;
      isOver = true;
      this.#cancel();
      this.#take(outcome);
      this.#settle();
      // The callback may have closed the poller.
      if (!this.#isClosed) this.#scheduleNext(askedMs);
    };
    this.#cancel = clock.schedule(settings.timeoutMs, () =>
      end(new ServiceError("SIGNAL_TIMEOUT")),
    );
    reader.read(askedMs + settings.timeoutMs).then(end, (thrown: unknown) => {
      end(toServiceError(thrown));
    });
  }

  #scheduleNext(askedMs: number): void {
    const { clock, random, settings } = this.#parts;
    const spread = 1 + pollSpreadRatio * (random.next() - 0.5);
    const inMs = askedMs + settings.everyMs * spread - clock.monotonicMs();
    this.#cancel = clock.schedule(Math.max(0, inMs), () => this.#poll());
  }

  #take(outcome: SignalReadings | ServiceError): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const isFailure = outcome instanceof ServiceError;
    const word = isFailure ? outcome.code : "ok";
    this.#failure = isFailure ? outcome.code : undefined;
    this.countByOutcome.set(word, (this.countByOutcome.get(word) ?? 0) + 1);
    const update = isFailure ? this.#registry.failed(nowMs) : this.#registry.heard(outcome, nowMs);
    this.#tell(isFailure ? outcome : undefined, nowMs);
    if (update !== undefined) this.#parts.onUpdate(update);
  }

  #tell(failure: ServiceError | undefined, nowMs: number): void {
    const { onEvent, settings } = this.#parts;
    if (failure === undefined) {
      if (this.#reportedFailure !== undefined) onEvent({ kind: "signalFound" });
      this.#reportedFailure = undefined;
    } else if (
      failure.code !== this.#reportedFailure &&
      nowMs - this.#reportedAtMs >= failureReportedMsMin
    ) {
      this.#reportedFailure = failure.code;
      this.#reportedAtMs = nowMs;
      onEvent({ kind: "signalFailing", code: failure.code, detail: failure.message });
    }
    const wasMissing = this.#isMissing;
    this.#isMissing = this.#registry.isMissing(nowMs);
    if (this.#isMissing && !wasMissing) {
      onEvent({ kind: "signalMissing", whenMissing: settings.whenMissing });
    }
  }
}
