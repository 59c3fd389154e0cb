import type { PreparedQuery } from "../../src/decide/rate-limit/prepared-query.js";
import type { RateLimitQuery } from "../../src/decide/rate-limit/query.js";
import type { SentBatch } from "../support/simulated-store.js";

/** The store's budget of each replica, in milliseconds. */
export const storeBudgetMs = 10;

/** One call as its caller sees it. */
export interface Ask {
  readonly query: RateLimitQuery;
  readonly prepared: PreparedQuery;
  /** What it asks the store: keys, costs and refunds as a text. */
  readonly identity: string;
  readonly startMs: number;
  readonly deadlineMs: number;
  batch: SentBatch | undefined;
  outcome: "waiting" | "ok" | "denied" | "failed";
  /** Descriptors of which the answer says that nobody looked at them. */
  unknownCount: number;
}

/** Where an answer came from; `nobody` decided what meets no limit or came too late. */
export type AnswerSource = "store" | "memory" | "fallback" | "nobody";
