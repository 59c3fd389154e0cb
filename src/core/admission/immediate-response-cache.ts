import type { ReportedRule } from "../limits/reported-rule.js";
import type { Refusal } from "./exchange-messages.js";
import { isGrpcRequest, type RefusalCause, type RejectSettings, refusalOf } from "./refusal.js";
import { type RetryWait, retryAfterSeconds } from "./retry-after.js";

/** Refusals that are kept; with more they are begun anew. */
export const keptRefusalsMax = 1_000;

interface RefusalCacheParts {
  /** As the policy calls it. */
  readonly service: string;
  readonly settings: RejectSettings;
  /** Uniform in [0, 1). */
  readonly draw: () => number;
}

/** What has to be known of the request: `content-type` and `:method`. */
interface RefusedHeaders {
  /** By lower-case name, pseudo-headers among them. */
  readonly headers: Pick<ReadonlyMap<string, string>, "get">;
}

/** What is told of a refusal beside its cause. */
export interface RefusalDetail {
  readonly wait: RetryWait;
  /** The rule whose limit it is; absent for other causes, and where nobody knows. */
  readonly reportedRule?: ReportedRule | undefined;
  /** The budget that has no room; absent for other causes. */
  readonly budget?: string | undefined;
}

/**
 * Refusals of one service. They differ by cause or rule, by kind of request and by the seconds that
 * they name, and in nothing else: so each is made once, since a flood is refused with few of them.
 */
export class ImmediateResponseCache {
  readonly #parts: RefusalCacheParts;
  readonly #kept = new Map<string, Refusal>();

  constructor(parts: RefusalCacheParts) {
    this.#parts = parts;
  }

  /** Refusals that are kept now. */
  get size(): number {
    return this.#kept.size;
  }

  refusal(cause: RefusalCause, { headers }: RefusedHeaders, why: RefusalDetail): Refusal {
    const { service, settings, draw } = this.#parts;
    const { reportedRule, budget } = why;
    const retrySeconds = retryAfterSeconds(settings, why.wait, draw());
    const contentType = headers.get("content-type");
    const method = headers.get(":method");
    const kind = isGrpcRequest(contentType) ? "grpc" : method === "HEAD" ? "head" : "http";
    const rule =
      reportedRule === undefined
        ? (budget ?? "")
        : ` ${reportedRule.rule} ${reportedRule.limit ?? ""}`;
    const name = `${cause} ${kind} ${retrySeconds} ${rule}`;
    const known = this.#kept.get(name);
    if (known !== undefined) return known;
    const request = { method, contentType };
    const refusal = refusalOf(settings, {
      service,
      cause,
      reportedRule,
      budget,
      request,
      retrySeconds,
    });
    if (this.#kept.size >= keptRefusalsMax) this.#kept.clear();
    this.#kept.set(name, refusal);
    return refusal;
  }
}
