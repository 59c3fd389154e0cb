import type { ReportedRule } from "../limits/reported-rule.js";
import type { Refusal } from "./exchange-messages.js";
import { isGrpcRequest, type RefusalCause, type RejectSettings, refusalOf } from "./refusal.js";
import { type RetryWait, retryAfterSeconds } from "./retry-after.js";

/** Maximum number of cached refusals. When it is reached, the cache is cleared. */
export const keptRefusalsMax = 1_000;

interface RefusalCacheParts {
  /** Name in the policy. */
  readonly service: string;
  readonly settings: RejectSettings;
  /** Uniform in [0, 1). */
  readonly draw: () => number;
}

/** Headers that a refusal depends on: `content-type` and `:method`. */
interface RefusedHeaders {
  /** By lower-case name, pseudo-headers among them. */
  readonly headers: Pick<ReadonlyMap<string, string>, "get">;
}

/** Details of a refusal besides its cause. */
export interface RefusalDetail {
  readonly wait: RetryWait;
  /** The rule whose limit is reached; absent for other causes, and if it is not known. */
  readonly reportedRule?: ReportedRule | undefined;
  /** The budget that has no room; absent for other causes. */
  readonly budget?: string | undefined;
}

/**
 * Refusals of one service. They differ only by cause, rule or budget, by kind of request and by the
 * seconds that they name. Each is built once, because a flood is refused with few of them.
 */
export class ImmediateResponseCache {
  readonly #parts: RefusalCacheParts;
  readonly #kept = new Map<string, Refusal>();

  constructor(parts: RefusalCacheParts) {
    this.#parts = parts;
  }

  /** Number of cached refusals. */
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
