import type {
  Admission,
  AdmissionOptions,
  Attempt,
  CallOptions,
} from "../../src/client/admission.js";
import { AdmissionError } from "../../src/client/admission-error.js";
import { createAdmission } from "../../src/client/create-admission.js";
import type { AttemptOutcome, OutcomeKind } from "../../src/core/calls/attempt-outcome.js";
import { FakeClock, settlePromises } from "./fake-clock.js";
import { FakeRandom } from "./fake-random.js";

/** What the work of an attempt does. */
export interface WorkPlan {
  /** How long it takes; Infinity: it never settles by itself. */
  readonly ms: number;
  readonly kind?: OutcomeKind;
  readonly retriable?: AttemptOutcome["retriable"];
  readonly retryAfterMs?: number;
  /** How it fails where it is not served. Default: it resolves, and is classified by its value */
  readonly fails?: "rejects" | "throws";
  /** Whether its signal does nothing. Default false */
  readonly ignoresSignal?: boolean;
  /** How long it holds its permit after it has settled. */
  readonly holdMs?: number;
}

/** What a work saw when it began. */
export interface BegunWork {
  readonly attempt: Attempt;
  readonly atMs: number;
  readonly inFlight: number;
  readonly remainingMs: number | undefined;
}

type Result = AttemptOutcome & { readonly number: number };

/** An admission in virtual time, and works that do as they are told. */
export class CallRig {
  readonly clock = new FakeClock({ monotonicMs: 0 });
  readonly admission: Admission;
  /** All works that have begun, in their order. */
  readonly begun: BegunWork[] = [];
  /** Results of calls by their names, as soon as there are any. */
  readonly results = new Map<string, string>();
  #openCount = 0;

  constructor(options: Partial<AdmissionOptions>, seed = 1) {
    const tests = { clock: this.clock, random: new FakeRandom(seed) };
    this.admission = createAdmission({ name: "shop", ...tests, ...options });
  }

  /** Works that have begun and not settled, or still hold. */
  get openCount(): number {
    return this.#openCount;
  }

  /** Makes a call; its attempts do as the plans say, the last one again and again. */
  call(name: string, plans: readonly WorkPlan[], options: CallOptions<Result> = {}): void {
    const classify: CallOptions<Result>["classify"] = (settled) => {
      if (!settled.isError) return settled.value;
      return settled.error instanceof PlannedError ? settled.error.outcome : failed;
    };
    let count = 0;
    this.admission
      .run(
        (attempt) => {
          const plan = plans[Math.min(count, plans.length - 1)] ?? { ms: 0 };
          count += 1;
          return this.#work(plan, attempt);
        },
        { classify, ...options },
      )
      .then(
        ({ kind, number }) => this.results.set(name, `${kind} ${number}`),
        (error: unknown) => this.results.set(name, reasonOf(error)),
      );
  }

  /** The result of a call; undefined while there is none. */
  result(name: string): string | undefined {
    return this.results.get(name);
  }

  /** Lets time pass, a promise's reactions after every millisecond or `stepMs`. */
  async pass(ms: number, stepMs = 1): Promise<void> {
    await settlePromises();
    await this.clock.advanceAsync(ms, stepMs);
  }

  #work(plan: WorkPlan, attempt: Attempt): Promise<Result> {
    const { ms, kind = "served", retriable = "never", retryAfterMs, fails, holdMs } = plan;
    this.#openCount += 1;
    this.begun.push({
      attempt,
      atMs: this.clock.monotonicMs(),
      inFlight: this.#openCount,
      remainingMs: attempt.remainingMs,
    });
    const later = retryAfterMs === undefined ? {} : { retryAfterMs };
    const outcome: AttemptOutcome = { kind, retriable, ...later };
    if (fails === "throws") {
      this.#openCount -= 1;
      throw new PlannedError(outcome);
    }
    return new Promise((resolve, reject) => {
      let isOver = false;
      const settle = (how: () => void): void => {
        if (isOver) return;
        isOver = true;
        if (holdMs === undefined) this.#openCount -= 1;
        else attempt.holdUntil(this.#held(holdMs));
        how();
      };
      if (ms !== Number.POSITIVE_INFINITY) {
        this.clock.schedule(ms, () =>
          settle(() =>
            fails === "rejects"
              ? reject(new PlannedError(outcome))
              : resolve({ ...outcome, number: attempt.number }),
          ),
        );
      }
      if (plan.ignoresSignal === true) return;
      attempt.signal.addEventListener("abort", () => settle(() => reject(attempt.signal.reason)));
    });
  }

  #held(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.schedule(ms, () => {
        this.#openCount -= 1;
        resolve();
      });
    });
  }
}

/** What a work fails with. */
class PlannedError extends Error {
  readonly outcome: AttemptOutcome;

  constructor(outcome: AttemptOutcome) {
    super(`planned: ${outcome.kind}`);
    this.outcome = outcome;
  }
}

const failed: AttemptOutcome = { kind: "failed", retriable: "never" };

function reasonOf(error: unknown): string {
  if (error instanceof AdmissionError) return error.reason;
  if (error instanceof Error) return error.name === "Error" ? error.message : error.name;
  return String(error);
}
