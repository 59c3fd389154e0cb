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

/** Result of parsing a policy. */
export type PolicyParsing =
  | {
      readonly kind: "policy";
      readonly policy: Policy;
      readonly warnings: FoundProblems;
      readonly chunkCount: number;
    }
  | ParseProblems
  /** A failure without a position in a text: it took too long, or there was no text at all. */
  | {
      readonly kind: "failed";
      readonly message: string;
      /** Whether the text is not at fault, so that it may be parsed again a moment later. */
      readonly isPassing?: true;
    };

/** Input and bounds of parsing. */
export interface PolicyParsingOptions {
  readonly input: PolicyInput;
  /** Options for reading the texts. */
  readonly parse?: ParseOptions;
  readonly version: string;
  readonly clock: Clock;
  /** Maximum time that parsing may take. Default `parsingMsMax`. */
  readonly limitMs?: number;
  /** Maximum memory that parsing may take, in megabytes. Default `parsingMegabytesMax`. */
  readonly limitMegabytes?: number;
}

/** Parses and builds a policy. Never rejects. Uses a worker thread, except in tests. */
export type ParsesPolicies = (options: PolicyParsingOptions) => Promise<PolicyParsing>;

/** Maximum time to parse a policy, in ms: a hundred times what 10,000 limits need. */
const parsingMsMax = 60_000;

/** Maximum memory that parsing may take, in megabytes. */
const parsingMegabytesMax = 1_024;

/**
 * Parses a policy in a worker thread and builds it here, one chunk in each turn of the event loop.
 * Never rejects: a crash of the worker becomes a failure with a message.
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
      // Errors of a terminated worker must not surface as an error event without a listener.
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

/** A policy that is assembled as its pieces arrive. */
class Assembly {
  readonly #builder: PolicyBuilder;
  /** Pieces that are still to come. */
  #ruleCount = 0;
  #serviceCount = 0;
  #roomCount = 0;
  #budgetCount = 0;
  #chunkCount = 0;
  #warnings: FoundProblems = { problems: [], unreportedCount: 0 };

  constructor(builder: PolicyBuilder) {
    this.#builder = builder;
  }

  /** Takes a message. Returns the result, or undefined if more messages are to come. */
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
    // The system has no thread or memory left: the reload fails, but the process goes on.
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

/** Reports a shortage. A starting thread reads its modules, and needs a dozen file descriptors. */
function isShortage(error: unknown): boolean {
  const code: unknown = Reflect.get(Object(error), "code");
  return isDescriptorShortage(error) || code === "ERR_WORKER_INIT_FAILED" || code === "ENOMEM";
}
