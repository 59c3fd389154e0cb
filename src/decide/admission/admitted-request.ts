import type { Deadline } from "../../core/admission/deadline.js";
import type { QueueState } from "../../core/admission/estimated-wait.js";
import type { PermitPool } from "../../core/admission/permit-pool.js";
import type { KeyCount } from "../../core/admission/permits.js";
import { callerHashRatio, type Priority } from "../../core/admission/priority.js";
import type { QueuePlace } from "../../core/admission/request-queue.js";
import type { Cancel } from "../../core/base/clock.js";
import type { Expiring } from "../../core/collections/expiry-heap.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { BudgetedCall } from "../budget/budget-call.js";
import type {
  AdmissionAnswer,
  AdmissionCall,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
  ResponseFacts,
} from "./admission-call.js";

/**
 * Stage of a request. A permit is taken on entry to `admitted` and given back on exit. No stage
 * leads back to `admitted`, so each permit is given back exactly once.
 */
type AdmittedRequestStage =
  /** Nothing is decided. */
  | "asking"
  /** A rate limit delays it until it fits. */
  | "delayed"
  /** In the queue. */
  | "waiting"
  /** Holds a permit. */
  | "admitted"
  /** Needs no permit, but budgets follow it to its end. */
  | "followed"
  /** The lease of its permit has ended; its exchange is still open. */
  | "overdue"
  /** Refused, abandoned by its caller, or completed. */
  | "over";

/** What a request reports to its service. */
export interface AdmittedRequestHost {
  /** The exchange has ended, at a stage other than "over". */
  ended(visit: AdmittedRequest, end: Parameters<AdmissionTicket["end"]>[0]): void;
  /** The upstream sent a load report. */
  reported(loadMetrics: string): void;
}

/** Initial values of an `AdmittedRequest`. */
interface AdmittedRequestParts {
  readonly host: AdmittedRequestHost;
  readonly request: AdmissionRequest;
  readonly priority: Priority;
  readonly caller: string;
  readonly deadline: Deadline | undefined;
  readonly arrivedMs: number;
  readonly pool: PermitPool<AdmittedRequest>;
}

/** One request on its way through admission, and the ticket that its exchange holds. */
export class AdmittedRequest implements AdmissionTicket, Expiring {
  readonly request: AdmissionRequest;
  readonly priority: Priority;
  readonly caller: string;
  readonly deadline: Deadline | undefined;
  readonly arrivedMs: number;
  readonly pool: PermitPool<AdmittedRequest>;
  readonly #host: AdmittedRequestHost;
  stage: AdmittedRequestStage = "asking";
  /** Place in the queue, while the request waits. */
  place: QueuePlace<AdmittedRequest> | undefined;
  /** Position in the queue on arrival. Without a queue: permits in use, including its own. */
  position = 0;
  /** When it got its permit, and how many were then in use, including its own. */
  admittedMs = 0;
  inFlight = 0;
  /** When the lease of its permit ends. */
  expiresMs = Number.POSITIVE_INFINITY;
  /** Its index in the heap of leases; see `Expiring`. */
  heapPlace: number | undefined;
  /** What limits change about it. Undefined: nothing. */
  marks: RequestMarks | undefined;
  /** The call that budgets follow, until it has ended. Undefined: budgets follow none. */
  budgeted: BudgetedCall | undefined;
  /** How long a rate limit has delayed it, in milliseconds. */
  delayedMs = 0;
  /** Cancels the delay. Undefined if no rate limit delays it now. */
  cancelDelay: Cancel | undefined;
  /** Whether it also holds a permit of the pool of the whole service. */
  holdsWhole = false;
  /** Permit of its caller, route or model, if those are counted. Held from before it waits. */
  keyCount: KeyCount | undefined;
  /** Gives back the same permit in the fleet's count. Undefined if it has none there. */
  giveBackShared: (() => void) | undefined;
  /** What is known of the response so far. */
  response: ResponseFacts | undefined;
  /** Receives verdicts. Undefined while `begin` runs, which returns the verdict itself. */
  #call: AdmissionCall | undefined;
  #verdict: AdmissionVerdict | undefined;
  #callerHashRatio: number | undefined;
  #queueState: QueueState | undefined;

  constructor(parts: AdmittedRequestParts) {
    this.#host = parts.host;
    this.request = parts.request;
    this.priority = parts.priority;
    this.caller = parts.caller;
    this.deadline = parts.deadline;
    this.arrivedMs = parts.arrivedMs;
    this.pool = parts.pool;
  }

  /** Delivers a verdict: while `begin` runs, as its result; afterwards, to its `call`. */
  tell(verdict: AdmissionVerdict): void {
    if (this.#call === undefined) this.#verdict = verdict;
    else this.#call.decided(verdict);
  }

  /** Returns the result of `begin`. From then on, `call` receives verdicts. */
  begun(call: AdmissionCall): AdmissionAnswer {
    this.#call = call;
    return this.#verdict ?? { kind: "asking", ticket: this };
  }

  /** See `callerHashRatio`. Computed only if a threshold is near. */
  get callerHashRatio(): number {
    this.#callerHashRatio ??= callerHashRatio(this.caller);
    return this.#callerHashRatio;
  }

  /** State of the queue at the first use, which is while the request is decided. */
  queueState(nowMs: number): QueueState {
    this.#queueState ??= this.pool.state(nowMs);
    return this.#queueState;
  }

  /** Remaining time of the caller, in milliseconds. Undefined without a deadline. */
  remainingMs(nowMs: number): number | undefined {
    if (this.deadline === undefined) return undefined;
    return this.deadline.remainingMs - (nowMs - this.arrivedMs);
  }

  responded(facts: ResponseFacts): void {
    this.budgeted?.responded(facts);
    if (facts.loadMetrics !== undefined) this.#host.reported(facts.loadMetrics);
    const { status, grpcStatus, isOverloaded } = facts;
    this.response = {
      status: status ?? this.response?.status,
      grpcStatus: grpcStatus ?? this.response?.grpcStatus,
      isOverloaded: isOverloaded || this.response?.isOverloaded === true,
      loadMetrics: undefined,
    };
  }

  end(end: Parameters<AdmissionTicket["end"]>[0]): void {
    if (this.stage !== "over") this.#host.ended(this, end);
  }
}
