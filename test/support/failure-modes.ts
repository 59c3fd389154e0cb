import { expect } from "vitest";
import { edgePolicy } from "./gateway.js";
import { storeBudgetMs } from "./headgate-process.js";
import type { Stage } from "./stage.js";
import { type CallOutcome, Traffic } from "./traffic.js";
import { waitFor } from "./wait.js";
import type { WithheldTime } from "./withheld-time.js";

/** What a limit may do while the store cannot answer; each is also a key of `failureModePolicy`. */
export const failureModes = ["local", "allow", "deny", "error"] as const;

/** One of them. */
export type FailureModeName = (typeof failureModes)[number];

/** An hourly limit of 100 for every failure mode. */
export const failureModePolicy = edgePolicy(
  failureModes
    .map(
      (mode) => `
      - key: ${mode}
        rate_limit: {unit: hour, requests_per_unit: 100}
        on_store_failure: ${mode}`,
    )
    .join(""),
);

/** Ten times the second in which a store that is back must be used again, in milliseconds. */
export const recoveryMsMax = 10_000;

/** The budget and ten times the 5 ms that the promise leaves for everything else. */
export const answerMsMax = storeBudgetMs + 10 * 5;

/** A call this slow, in milliseconds, waited for something that nobody should wait for. */
export const hangMs = 1_500;

/** Calls of each mode that show how a phase is answered. */
const phaseCallsMin = 100;

/** Pause of each caller between two calls while a test waits for what it then looks at. */
const waitingPauseMs = 5;

/** How long enough calls of every mode may take on a machine that is busy with other work. */
const phaseMsMax = 60_000;

/** Calls of each mode after which none is under way any more that began before. */
const settledCallsMin = 10;

/** What each mode must answer, and nothing else; `A|B` takes either. */
export type ModeOutcomes = Readonly<Record<FailureModeName, CallOutcome>>;

/** Callers of all failure modes at once; none of them ever meets its limit. */
export class ModeTraffic {
  readonly #byMode: Readonly<Record<FailureModeName, Traffic>>;
  readonly #withheldMs: WithheldTime;

  /**
   * Starts them; they stop with the stage.
   *
   * @param call asks for one hit of the account under the mode's key
   * @param withheldMs time that is not the answer's, taken off
   */
  constructor(
    stage: Stage,
    call: (mode: FailureModeName, account: string) => Promise<CallOutcome>,
    withheldMs: WithheldTime = () => 0,
  ) {
    this.#withheldMs = withheldMs;
    const start = (mode: FailureModeName): Traffic => {
      let asked = 0;
      const callOnce = (): Promise<CallOutcome> => {
        asked += 1;
        // A new account for every ten calls: a limit of 100 is then never the reason.
        return call(mode, `account-${Math.floor(asked / 10)}`);
      };
      const traffic = Traffic.start(stage, { callersCount: 1, call: callOnce, withheldMs });
      traffic.pauseBetweenCalls(waitingPauseMs);
      return traffic;
    };
    this.#byMode = {
      local: start("local"),
      allow: start("allow"),
      deny: start("deny"),
      error: start("error"),
    };
  }

  /** Waits until each mode was answered so, after whatever else; then expects nothing else. */
  async expectFromNowOn(outcomes: ModeOutcomes, withinMs = recoveryMsMax): Promise<void> {
    this.#beginPhase();
    await waitFor(
      `${JSON.stringify(outcomes)}, seen ${settledCallsMin} times each`,
      () => failureModes.every((mode) => this.#count(mode, outcomes[mode]) >= settledCallsMin),
      { withinMs, withheldMs: this.#withheldMs },
    ).catch((thrown: unknown) => {
      const seen = failureModes.map((mode) => [mode, this.#byMode[mode].counts.byOutcome]);
      throw new Error(`${JSON.stringify(Object.fromEntries(seen))}`, { cause: thrown });
    });
    await this.expectNothingBut(outcomes);
  }

  /** Looks at many calls that begin now: all are answered so, and in time. */
  async expectNothingBut(outcomes: ModeOutcomes): Promise<void> {
    this.#pause(0);
    await this.#settle();
    this.#beginPhase();
    const isOver = () => failureModes.every((mode) => this.#total(mode) >= phaseCallsMin);
    await waitFor("every mode is asked often", isOver, { withinMs: phaseMsMax });
    this.#pause(waitingPauseMs);
    for (const mode of failureModes) {
      const { byOutcome, slowestMs, medianMs, p99Ms } = this.#byMode[mode].counts;
      const expected = outcomes[mode].split("|");
      const unexpected = Object.entries(byOutcome).filter(
        ([outcome]) => !expected.includes(outcome),
      );
      expect({ mode, unexpected }).toEqual({ mode, unexpected: [] });
      expect(p99Ms).toBeLessThan(answerMsMax);
      expect(slowestMs).toBeLessThan(hangMs);
      // Most do not wait for a store that does not answer.
      expect(medianMs).toBeLessThan(storeBudgetMs / 2);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(failureModes.map((mode) => this.#byMode[mode].stop()));
  }

  /** Waits until no call is under way that began before now. */
  async #settle(): Promise<void> {
    this.#beginPhase();
    const isSettled = () => failureModes.every((mode) => this.#total(mode) >= settledCallsMin);
    await waitFor("earlier calls have ended", isSettled, { withinMs: phaseMsMax });
  }

  #pause(pauseMs: number): void {
    for (const mode of failureModes) this.#byMode[mode].pauseBetweenCalls(pauseMs);
  }

  #beginPhase(): void {
    for (const mode of failureModes) this.#byMode[mode].beginPhase();
  }

  #total(mode: FailureModeName): number {
    return this.#byMode[mode].total;
  }

  #count(mode: FailureModeName, outcomes: CallOutcome): number {
    const counts = outcomes.split("|").map((outcome) => this.#byMode[mode].count(outcome));
    return counts.reduce((sum, count) => sum + count, 0);
  }
}
