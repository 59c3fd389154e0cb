import type { RefusalCause, RejectSettings } from "../core/admission-settings.js";
import type { Refusal } from "../core/exchange-messages.js";
import { isGrpcRequest, refusalOf } from "../core/refusal.js";
import { type RetryWait, retryAfterSeconds } from "../core/retry-after.js";
import type { AdmissionRequest } from "./admission-call.js";

/** Refusals that are kept; with more they are begun anew. */
export const keptRefusalsMax = 1_000;

/**
 * Refusals of one service. They differ by cause, by kind of request and by the seconds that they
 * name, and in nothing else: so each is made once, since a flood is refused with few of them.
 */
export class RefusalCache {
  readonly #settings: RejectSettings;
  readonly #draw: () => number;
  readonly #kept = new Map<string, Refusal>();

  /** @param draw uniform in [0, 1) */
  constructor(settings: RejectSettings, draw: () => number) {
    this.#settings = settings;
    this.#draw = draw;
  }

  /** Refusals that are kept now. */
  get size(): number {
    return this.#kept.size;
  }

  refusal(cause: RefusalCause, { headers }: AdmissionRequest, wait: RetryWait): Refusal {
    const retrySeconds = retryAfterSeconds(this.#settings, wait, this.#draw());
    const contentType = headers.get("content-type");
    const method = headers.get(":method");
    const kind = isGrpcRequest(contentType) ? "grpc" : method === "HEAD" ? "head" : "http";
    const name = `${cause} ${kind} ${retrySeconds}`;
    const known = this.#kept.get(name);
    if (known !== undefined) return known;
    const request = { method, contentType };
    const refusal = refusalOf(this.#settings, { cause, request, retrySeconds });
    if (this.#kept.size >= keptRefusalsMax) this.#kept.clear();
    this.#kept.set(name, refusal);
    return refusal;
  }
}
