import type { PermitSeeker } from "../../core/admission/admission-queue.js";
import type { Deadline } from "../../core/admission/deadline.js";
import type { Refusal } from "../../core/admission/exchange-messages.js";
import type { PermitPool } from "../../core/admission/permit-pool.js";
import type { Priority } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { QueuePlace } from "../../core/admission/request-queue.js";
import type {
  EndedRequest,
  RequestEnding,
  ResponseStatus,
} from "../../core/calls/request-outcome.js";
import type { RequestPermit, ServerVerdict } from "./request-permit.js";
import type { ServerRequest } from "./server-options.js";

/** The admission of a request, as the request sees it. */
export interface PermitHost {
  isBrownedOut(priority: Priority): boolean;
  brownoutRatio(priority: Priority): number;
  nowMs(): number;
  /** Handles the end of a request, whose stage is not yet "over". */
  ended(request: InboundRequest, ending: RequestEnding): void;
}

interface PendingParts {
  readonly host: PermitHost;
  readonly pool: PermitPool<InboundRequest>;
  readonly priority: Priority;
  readonly deadline: Deadline | undefined;
  readonly arrivedMs: number;
}

/** The process has one peer: itself. */
const ownProcess = { peer: "" } as const;

/** A request during admission, and the permit that its handler holds. */
export class InboundRequest implements RequestPermit, EndedRequest, PermitSeeker<InboundRequest> {
  readonly request = ownProcess;
  readonly pool: PermitPool<InboundRequest>;
  readonly priority: Priority;
  readonly deadline: Deadline | undefined;
  readonly arrivedMs: number;
  readonly #host: PermitHost;
  stage: "asking" | "waiting" | "admitted" | "over" = "asking";
  place: QueuePlace<InboundRequest> | undefined;
  /** Place in the queue at arrival, or permits in use if there is no queue. */
  position = 0;
  /** Time of its admission, and the permits in use at that time, including its own. */
  admittedMs = 0;
  inFlight = 0;
  response: ResponseStatus | undefined;
  /** The request itself, while it waits: a refusal depends on it. */
  asked: ServerRequest | undefined;
  #left: AbortController | undefined;
  #decide: ((verdict: ServerVerdict) => void) | undefined;

  constructor({ host, pool, priority, deadline, arrivedMs }: PendingParts) {
    this.#host = host;
    this.pool = pool;
    this.priority = priority;
    this.deadline = deadline;
    this.arrivedMs = arrivedMs;
  }

  get brownout(): boolean {
    return this.#host.isBrownedOut(this.priority);
  }

  get brownoutRatio(): number {
    return this.#host.brownoutRatio(this.priority);
  }

  get signal(): AbortSignal {
    if (this.#left === undefined) {
      this.#left = new AbortController();
      if (this.stage === "over") this.#left.abort();
    }
    return this.#left.signal;
  }

  remainingMs(nowMs: number = this.#host.nowMs()): number | undefined {
    if (this.deadline === undefined) return undefined;
    return this.deadline.remainingMs - (nowMs - this.arrivedMs);
  }

  end(ending: RequestEnding, response?: Partial<ResponseStatus>): void {
    if (this.stage === "over") return;
    if (response !== undefined) {
      this.response = {
        status: undefined,
        grpcStatus: undefined,
        isOverloaded: false,
        ...response,
      };
    }
    this.#host.ended(this, ending);
    if (ending !== "completed") this.#left?.abort();
    this.#decide?.({ kind: "left" });
  }

  /** Resolves when it is admitted or refused, or when its client leaves. */
  verdict(): Promise<ServerVerdict> {
    return new Promise((resolve) => {
      this.#decide = resolve;
    });
  }

  /** Reports that it was admitted while it waited. */
  admitted(): void {
    this.#decide?.({ kind: "admitted", permit: this });
  }

  /** Reports that it was refused while it waited. */
  refused(cause: RefusalCause, refusal: Refusal): void {
    this.#decide?.({ kind: "refused", cause, refusal });
  }
}
