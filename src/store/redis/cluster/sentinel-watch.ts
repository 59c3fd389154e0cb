import type { Cancel, Clock } from "../../../core/base/clock.js";
import { ServiceError, toServiceError } from "../../../core/base/errors.js";
import type { HostPort } from "../target.js";

/** Sends a sentinel the SENTINEL command with these words. */
type AskSentinel = (words: readonly string[], deadlineMs: number) => Promise<unknown>;

interface SentinelWatchParts {
  /** The sentinels' name for the primary. */
  readonly primaryName: string;
  /** One for each sentinel. Rejects at once while the sentinel cannot be reached. */
  readonly sentinels: readonly AskSentinel[];
  readonly clock: Clock;
  /** Called for every new address except the first. */
  readonly onMoved: () => void;
}

/** Time between two polls without failures. An old primary that is alive may be used this long. */
export const calmLookMs = 1_000;

/** Minimum time between two polls, whatever fails. */
export const doubtLookMs = 100;

/** Maximum wait of one poll for a sentinel. The others have answered by then. */
export const askMsMax = 300;

/** Maximum wait of `find` for the first address. */
export const findMsMax = 1_000;

/**
 * Tracks the address of the primary by polling all sentinels at the same time, sooner if a
 * connection was lost. The answer with the highest epoch counts: a sentinel that was disconnected
 * and missed a failover still returns the old primary, with the old epoch.
 *
 * Does not subscribe to `+switch-master`: a message that is lost with its connection is not sent
 * again, so polling is needed anyway. Until the old primary's connections break, a second of delay
 * loses nothing that asynchronous replication would have kept.
 */
export class SentinelWatch {
  readonly #parts: SentinelWatchParts;
  #primary: HostPort | undefined;
  #failure: ServiceError | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #isDoubted = false;
  #cancelNext: Cancel | undefined;
  #isClosed = false;
  readonly #waiting = new Set<() => void>();

  /** Polls at once, and then until `close`. */
  constructor(parts: SentinelWatchParts) {
    this.#parts = parts;
    this.doubt();
  }

  /**
   * Returns the last known address of the primary. Waits for the first answer. If no sentinel
   * returns an address within `findMsMax`, rejects with the sentinels' error.
   */
  async find(): Promise<HostPort> {
    if (this.#primary === undefined) await this.#firstAnswer();
    if (this.#primary !== undefined) return this.#primary;
    throw this.#failure ?? new ServiceError("STORE_UNAVAILABLE", "No sentinel has answered yet.");
  }

  /** Polls again soon, because the known address may be outdated. */
  doubt(): void {
    this.#isDoubted = true;
    if (!this.#isLooking) this.#lookLater(doubtLookMs);
  }

  /** Stops polling. */
  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
    for (const wake of [...this.#waiting]) wake();
  }

  #firstAnswer(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        this.#waiting.delete(wake);
        resolve();
      };
      const cancel = this.#parts.clock.schedule(findMsMax, wake);
      this.#waiting.add(wake);
    });
  }

  #lookLater(spanMs: number): void {
    if (this.#isClosed) return;
    const { clock } = this.#parts;
    this.#cancelNext?.();
    const delayMs = Math.max(0, this.#lookedMs + spanMs - clock.monotonicMs());
    this.#cancelNext = clock.schedule(delayMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { clock, sentinels } = this.#parts;
    this.#lookedMs = clock.monotonicMs();
    this.#isLooking = true;
    this.#isDoubted = false;
    const deadlineMs = this.#lookedMs + askMsMax;
    const answers = await Promise.all(sentinels.map((ask) => this.#ask(ask, deadlineMs)));
    this.#isLooking = false;
    if (this.#isClosed) return;
    const best = bestOf(answers);
    this.#failure = best === undefined ? failureOf(answers) : undefined;
    this.#lookLater(best === undefined || this.#isDoubted ? doubtLookMs : calmLookMs);
    if (best !== undefined) this.#follow(best);
  }

  #follow({ host, port }: HostPort): void {
    if (this.#primary?.host === host && this.#primary.port === port) return;
    const isFirst = this.#primary === undefined;
    this.#primary = { host, port };
    if (!isFirst) this.#parts.onMoved();
    for (const wake of [...this.#waiting]) wake();
  }

  /** Sends both commands together, so that no switch happens between them. */
  async #ask(ask: AskSentinel, deadlineMs: number): Promise<SentinelAnswer> {
    const { primaryName } = this.#parts;
    const place = ask(["get-master-addr-by-name", primaryName], deadlineMs);
    // The user may lack permission for this command. All addresses then have the same epoch.
    const state = ask(["master", primaryName], deadlineMs).catch(() => undefined);
    try {
      return parseAnswer(await place, await state);
    } catch (thrown) {
      return { kind: "failure", failure: sentinelFailure(toServiceError(thrown)) };
    }
  }
}

type SentinelAnswer =
  | {
      readonly kind: "primary";
      readonly host: string;
      readonly port: number;
      readonly epoch: number;
    }
  | { readonly kind: "failure"; readonly failure: ServiceError };

/** Source: "Redis Sentinel documentation", SENTINEL GET-MASTER-ADDR-BY-NAME and MASTER. */
function parseAnswer(place: unknown, state: unknown): SentinelAnswer {
  if (!Array.isArray(place)) {
    const detail = "The sentinels know no primary of this name. Check REDIS_URL.";
    return { kind: "failure", failure: new ServiceError("STORE_UNAVAILABLE", detail) };
  }
  const [host, port] = place.map(String);
  const portNumber = Number(port);
  if (host === undefined || host === "" || !(portNumber >= 1 && portNumber <= 65_535)) {
    return { kind: "failure", failure: new ServiceError("STORE_PROTOCOL") };
  }
  const fields = Array.isArray(state) ? state.map(String) : [];
  const at = fields.indexOf("config-epoch");
  const epoch = at < 0 ? 0 : Number(fields[at + 1]);
  return { kind: "primary", host, port: portNumber, epoch: Number.isFinite(epoch) ? epoch : 0 };
}

/** Returns the answer with the highest epoch; the first of equal ones, so that it is stable. */
function bestOf(answers: readonly SentinelAnswer[]): HostPort | undefined {
  let best: Extract<SentinelAnswer, { kind: "primary" }> | undefined;
  for (const answer of answers) {
    if (answer.kind === "primary" && (best === undefined || answer.epoch > best.epoch)) {
      best = answer;
    }
  }
  return best;
}

/** Returns the most informative failure: a refusal rather than an unreachable sentinel. */
function failureOf(answers: readonly SentinelAnswer[]): ServiceError | undefined {
  const failures = answers.flatMap((one) => (one.kind === "failure" ? [one.failure] : []));
  return failures.find(({ code }) => code !== "STORE_UNAVAILABLE") ?? failures[0];
}

/** Returns the failure with a message which shows that a sentinel reported it. */
function sentinelFailure({ code }: ServiceError): ServiceError {
  if (code === "STORE_UNAUTHENTICATED" || code === "STORE_ACCESS_DENIED") {
    return new ServiceError(
      code,
      "A sentinel reported this, not Redis. Check REDIS_SENTINEL_AUTH.",
    );
  }
  // A slow sentinel is only one of several, and does not mean that the store is slow.
  const whole = code === "STORE_TIMEOUT" ? "STORE_UNAVAILABLE" : code;
  return new ServiceError(whole, "A sentinel reported this, not Redis.");
}
