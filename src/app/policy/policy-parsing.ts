import type { Worker } from "node:worker_threads";
import type { Clock } from "../../core/base/clock.js";
import type { ParseOptions } from "../../policy/parse.js";
import { type Policy, PolicyBuilder } from "../../policy/policy.js";
import type { FoundProblems, ParseProblems } from "../../policy/problems/problem-log.js";
import { startOwnWorker } from "../base/own-worker.js";
import { isDescriptorShortage, readErrorWords } from "../config/policy-files.js";
import {
  nextChunk,
  type PolicyInput,
  type WorkerInput,
  type WorkerMessage,
} from "./policy-worker-messages.js";

/** How parsing a policy ended. */
export type PolicyParsing =
  | {
      readonly kind: "policy";
      readonly policy: Policy;
      readonly warnings: FoundProblems;
      readonly chunkCount: number;
    }
  | ParseProblems
  /** No fault of a text that could be pointed at: it took too long, or was no text at all. */
  | {
      readonly kind: "failed";
      readonly message: string;
      /** Whether it was no fault of the text, so that the same may be parsed a moment later. */
      readonly isPassing?: true;
    };

/** What parsing needs. */
export interface PolicyParsingOptions {
  readonly input: PolicyInput;
  /** How its texts are read. */
  readonly parse?: ParseOptions;
  readonly version: string;
  readonly clock: Clock;
  /** The longest it may take. Default `parsingMsMax`. */
  readonly limitMs?: number;
  /** The most memory it may take, in megabytes. Default `parsingMegabytesMax`. */
  readonly limitMegabytes?: number;
}

/** Parses and builds a policy. Never rejects. Everywhere but in tests it is a worker thread. */
export type ParsesPolicies = (options: PolicyParsingOptions) => Promise<PolicyParsing>;

/** The longest that a policy may take to parse: a hundred times what 10,000 limits need. */
const parsingMsMax = 60_000;

/** The most memory that parsing may take, in megabytes. */
const parsingMegabytesMax = 1_024;

/**
 * Parses a policy in a worker thread and builds it here, one chunk of it a turn of the event loop.
 * Never rejects: a crash of the worker is a failure with words.
 */
export function parsePolicyInWorker(options: PolicyParsingOptions): Promise<PolicyParsing> {
  const { version, clock, limitMs = parsingMsMax } = options;
  const limitMegabytes = options.limitMegabytes ?? parsingMegabytesMax;
  return new Promise<PolicyParsing>((resolve) => {
    const worker = tryStartWorker(options, limitMegabytes);
    if (worker === undefined) {
      const message = "no thread could be started to parse it";
      resolve({ kind: "failed", message, isPassing: true });
      return;
    }
    const assembly = new Assembly(new PolicyBuilder(version));
    const cancelLimit = clock.schedule(limitMs, () =>
      finish({ kind: "failed", message: `parsing took more than ${limitMs} ms` }),
    );
    const finish = (parsing: PolicyParsing): void => {
      cancelLimit();
      worker.removeAllListeners();
      // What a terminated worker still says must not surface as an error event without a listener.
      worker.on("error", () => {});
      void worker.terminate();
      resolve(parsing);
    };
    worker.on("message", (message: WorkerMessage) => {
      try {
        const parsing = assembly.take(message);
        if (parsing !== undefined) finish(parsing);
        else clock.scheduleTurn(() => worker.postMessage(nextChunk));
      } catch {
        finish({ kind: "failed", message: "building the policy failed, which is a bug" });
      }
    });
    worker.on("error", (error) => {
      const words = crashWords(error, limitMegabytes);
      const isPassing = isShortage(error);
      finish({ kind: "failed", message: words, ...(isPassing ? { isPassing } : {}) });
    });
    worker.on("exit", () => finish({ kind: "failed", message: "the parsing thread ended early" }));
  });
}

/** A policy as its pieces arrive. */
class Assembly {
  readonly #builder: PolicyBuilder;
  /** What is still to come. */
  #ruleCount = 0;
  #serviceCount = 0;
  #roomCount = 0;
  #budgetCount = 0;
  #chunkCount = 0;
  #warnings: FoundProblems = { problems: [], unreportedCount: 0 };

  constructor(builder: PolicyBuilder) {
    this.#builder = builder;
  }

  /** Takes a message; answers the end, or undefined when more is to come. */
  take(message: WorkerMessage): PolicyParsing | undefined {
    if (message.kind === "problems") return message;
    if (message.kind === "unreadable") return { kind: "failed", message: message.message };
    if (message.kind === "parsed") {
      this.#builder.addDomains(message.domains);
      this.#builder.setProxies(message.proxies);
      this.#builder.setQuotas(message.quotas);
      this.#ruleCount = message.ruleCount;
      this.#serviceCount = message.serviceCount;
      this.#roomCount = message.roomCount;
      this.#budgetCount = message.budgetCount;
      this.#builder.setPrices(message.prices);
      this.#warnings = message.warnings;
    } else if (message.kind === "waitingRoom") {
      this.#builder.addWaitingRooms([message.room]);
      this.#roomCount -= 1;
      this.#chunkCount += 1;
    } else if (message.kind === "budget") {
      this.#builder.addBudgets([message.budget]);
      this.#budgetCount -= 1;
      this.#chunkCount += 1;
    } else if (message.kind === "services") {
      this.#builder.addServices(message.services);
      this.#serviceCount -= message.services.length;
      this.#chunkCount += 1;
    } else {
      this.#builder.add(message.rules);
      this.#ruleCount -= message.rules.length;
      this.#chunkCount += 1;
    }
    const roomsAndBudgets = this.#roomCount + this.#budgetCount;
    if (this.#ruleCount + this.#serviceCount + roomsAndBudgets > 0) return undefined;
    const policy = this.#builder.finish();
    return { kind: "policy", policy, warnings: this.#warnings, chunkCount: this.#chunkCount };
  }
}

function tryStartWorker(options: PolicyParsingOptions, limitMegabytes: number): Worker | undefined {
  try {
    const { input, parse } = options;
    const workerData: WorkerInput = { policy: input, options: parse ?? {} };
    return startOwnWorker("app/policy/policy-worker", { workerData, limitMegabytes });
  } catch {
    // The system has no thread or memory left: a failed reload, and no reason to fall over.
    return undefined;
  }
}

function crashWords(error: unknown, limitMegabytes: number): string {
  const code: unknown = Reflect.get(Object(error), "code");
  if (code === "ERR_WORKER_OUT_OF_MEMORY") {
    return `parsing took more than ${limitMegabytes} MB of memory`;
  }
  if (isShortage(error)) return `the parsing thread could not start: ${readErrorWords(error)}`;
  return "the parsing thread crashed, which is a bug";
}

/** A thread reads its modules when it starts, and needs a dozen file descriptors. */
function isShortage(error: unknown): boolean {
  const code: unknown = Reflect.get(Object(error), "code");
  return isDescriptorShortage(error) || code === "ERR_WORKER_INIT_FAILED" || code === "ENOMEM";
}
