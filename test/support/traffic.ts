import type { Stage } from "./stage.js";
import { within } from "./wait.js";
import type { WithheldTime } from "./withheld-time.js";

/** How a call ended, in a word that tests can count: "200", "OVER_LIMIT", "UNAVAILABLE". */
export type CallOutcome = string;

/** How to make traffic. */
export interface TrafficOptions {
  /** Calls in flight at any time. */
  readonly callersCount: number;
  /** One call; a rejection is counted under "failed: " and its message. */
  readonly call: () => Promise<CallOutcome>;
  /** Time that is no call's fault, taken off theirs. Default: none. */
  readonly withheldMs?: WithheldTime;
}

/** What happened so far. */
export interface TrafficCounts {
  readonly total: number;
  readonly byOutcome: Readonly<Record<CallOutcome, number>>;
  readonly slowestMs: number;
  /** Time within which half of the calls were answered. */
  readonly medianMs: number;
  /** Time within which 99 of 100 calls were answered. */
  readonly p99Ms: number;
}

/** Times kept for `p99Ms`; of more calls than this, the first ones. */
const timesMax = 200_000;

/** Different outcomes counted before a test is told that it counts something else. */
const outcomesMax = 50;

/** How long calls in flight may still take when traffic stops, in milliseconds. */
const lastCallsMsMax = 15_000;

/** Callers that ask again as soon as they are answered, or a pause later. */
export class Traffic {
  readonly #call: TrafficOptions["call"];
  readonly #withheldMs: WithheldTime;
  readonly #callers: readonly Promise<void>[];
  #isStopping = false;
  #pauseMs = 0;
  #total = 0;
  #timesMs: number[] = [];
  #byOutcome = new Map<CallOutcome, number>();

  private constructor({ callersCount, call, withheldMs = () => 0 }: TrafficOptions) {
    this.#call = call;
    this.#withheldMs = withheldMs;
    this.#callers = Array.from({ length: callersCount }, () => this.#run());
  }

  /** Starts callers; they stop with the stage, should the test fail before it stops them. */
  static start(stage: Stage, options: TrafficOptions): Traffic {
    const traffic = new Traffic(options);
    stage.atEnd(() => traffic.stop());
    return traffic;
  }

  get counts(): TrafficCounts {
    const byOutcome = Object.fromEntries(this.#byOutcome);
    const timesMs = Float64Array.from(this.#timesMs).sort();
    const withinMs = (part: number): number => timesMs[Math.floor(timesMs.length * part)] ?? 0;
    const slowestMs = timesMs.at(-1) ?? 0;
    const total = this.#total;
    return { total, byOutcome, slowestMs, medianMs: withinMs(0.5), p99Ms: withinMs(0.99) };
  }

  /** How many calls ended. */
  get total(): number {
    return this.#total;
  }

  /** How many calls ended so. */
  count(outcome: CallOutcome): number {
    return this.#byOutcome.get(outcome) ?? 0;
  }

  /**
   * Each caller waits for so long after an answer from now on, 0 for not at all: who only waits for
   * something leaves the machine to others.
   */
  pauseBetweenCalls(pauseMs: number): void {
    this.#pauseMs = pauseMs;
  }

  /** Forgets what happened so far: a new phase of the test begins. Answers what is forgotten. */
  beginPhase(): TrafficCounts {
    const { counts } = this;
    this.#total = 0;
    this.#timesMs = [];
    this.#byOutcome = new Map();
    return counts;
  }

  /** Stops asking, waits for the calls in flight, answers what happened since the phase began. */
  async stop(): Promise<TrafficCounts> {
    this.#isStopping = true;
    await within("the last calls end", lastCallsMsMax, Promise.all(this.#callers));
    return this.counts;
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const startMs = this.#ownMs();
      const outcome = await this.#call().catch(failedOutcome);
      this.#total += 1;
      if (this.#timesMs.length < timesMax) this.#timesMs.push(this.#ownMs() - startMs);
      this.#byOutcome.set(outcome, (this.#byOutcome.get(outcome) ?? 0) + 1);
      if (this.#byOutcome.size > outcomesMax) throw new Error("too many different outcomes");
      const pauseMs = this.#pauseMs;
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  #ownMs(): number {
    return performance.now() - this.#withheldMs();
  }
}

/**
 * Lets other things happen before the next call, or calls that fail at once would be all that does.
 */
async function failedOutcome(thrown: unknown): Promise<CallOutcome> {
  await new Promise((resolve) => setImmediate(resolve));
  return `failed: ${String(thrown)}`;
}
