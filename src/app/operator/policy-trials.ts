import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { PolicyText } from "../../policy/parse.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import type { LogReplay, PolicyTestReport, PolicyTrials } from "../../rpc/admin/admin-parts.js";
import { startOwnWorker } from "../base/own-worker.js";
import { policyVersion } from "../config/policy-files.js";
import type { OpenPolicies } from "../policy/policies.js";
import type { TrialInput, TrialMessage, TriedPolicy } from "./policy-trial-messages.js";

/** What `PolicyTrialThreads` need. */
export interface PolicyTrialThreadsParts {
  readonly policies: Pick<OpenPolicies, "parse">;
  /** The active policy with its texts; undefined if no policy is loaded. */
  readonly current: () => TriedPolicy | undefined;
  readonly clock: Clock;
}

/** The maximum number of waiting trials; one runs at a time, in its own thread. */
const trialsWaitingMax = 4;

/** The maximum time of a trial, in milliseconds, and its maximum memory, in megabytes. */
const trialMsMax = 30_000;
const trialMegabytesMax = 512;

/** Tries policies in worker threads, so that they do not delay decisions. */
export class PolicyTrialThreads implements PolicyTrials {
  readonly #parts: PolicyTrialThreadsParts;
  #running: Promise<unknown> = Promise.resolve();
  #waitingCount = 0;

  constructor(parts: PolicyTrialThreadsParts) {
    this.#parts = parts;
  }

  async test(
    files: readonly PolicyText[],
    tests: readonly PolicyText[],
  ): Promise<PolicyTestReport | ParseProblems | "textless"> {
    const policy = files.length > 0 ? triedOf(files) : this.#active();
    if (policy === undefined) return "textless";
    const message = await this.#run({ kind: "test", policy, tests, options: this.#options });
    if (message.kind === "replayed") throw new ServiceError("INTERNAL");
    return message;
  }

  async replay(
    files: readonly PolicyText[],
    { text: log, format }: Parameters<PolicyTrials["replay"]>[1],
  ): Promise<LogReplay | ParseProblems | "textless"> {
    const active = this.#active();
    if (active === undefined) return "textless";
    const candidate = files.length > 0 ? triedOf(files) : undefined;
    const options = this.#options;
    const message = await this.#run({ kind: "replay", active, candidate, log, format, options });
    if (message.kind === "tested") throw new ServiceError("INTERNAL");
    return message;
  }

  get #options(): TrialInput["options"] {
    return this.#parts.policies.parse ?? {};
  }

  #active(): TriedPolicy | undefined {
    const active = this.#parts.current();
    return active === undefined || active.files.length === 0 ? undefined : active;
  }

  async #run(input: TrialInput): Promise<Exclude<TrialMessage, { readonly kind: "failed" }>> {
    if (this.#waitingCount >= trialsWaitingMax) {
      throw new ServiceError(
        "OVERLOADED",
        `${trialsWaitingMax} policy tests or replays are already waiting; try again later`,
      );
    }
    this.#waitingCount += 1;
    const own = this.#running.then(() => runInThread(input, this.#parts.clock));
    this.#running = own;
    try {
      const message = await own;
      if (message.kind === "failed") throw new ServiceError("OVERLOADED", message.message);
      return message;
    } finally {
      this.#waitingCount -= 1;
    }
  }
}

function triedOf(files: readonly PolicyText[]): TriedPolicy {
  return { version: policyVersion(files), files };
}

/** Never rejects: if the thread crashes, the result is a failure with a message. */
function runInThread(input: TrialInput, clock: Clock): Promise<TrialMessage> {
  return new Promise((resolve) => {
    const fail = (message: string): void => resolve({ kind: "failed", message });
    let worker: ReturnType<typeof startOwnWorker>;
    try {
      worker = startOwnWorker("app/operator/policy-trial-worker", {
        workerData: input,
        limitMegabytes: trialMegabytesMax,
      });
    } catch {
      // The system has no thread or memory left.
      fail("the test or replay could not start: no thread is available; try again later");
      return;
    }
    const cancel = clock.schedule(trialMsMax, () => {
      fail(
        `the test or replay was stopped after ${trialMsMax / 1_000} s; ` +
          "send fewer tests or a shorter log, or use the command line",
      );
      void worker.terminate();
    });
    worker.once("message", (message: TrialMessage) => {
      resolve(message);
      void worker.terminate();
    });
    worker.on("error", () =>
      fail(
        `the test or replay crashed, or needed more than ${trialMegabytesMax} MB of memory; ` +
          "send a shorter log, or use the command line",
      ),
    );
    worker.once("exit", () => {
      cancel();
      fail("the thread of the test or replay ended unexpectedly; try again");
    });
  });
}
