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
 * Where a request stands. A permit is taken on the way into `admitted` and given back on the way
 * out of it, and no way leads back into it: so each is given back exactly once.
 */
type AdmittedRequestStage =
  /** Nothing is decided. */
  | "asking"
  /** A rate limit holds it until it fits. */
  | "delayed"
  /** In the queue. */
  | "waiting"
  /** Holds a permit. */
  | "admitted"
  /** Needs no permit, but budgets follow it to its end. */
  | "followed"
  /** Has lost its permit with the end of its lease; its exchange is still open. */
  | "overdue"
  /** Refused, gone or done. */
  | "over";

/** What a visit tells the service that it is made at. */
export interface AdmittedRequestHost {
  /** The exchange is over, at a stage that is not "over" yet. */
  ended(visit: AdmittedRequest, end: Parameters<AdmissionTicket["end"]>[0]): void;
  /** The upstream's load report came. */
  reported(loadMetrics: string): void;
}

/** How a visit begins. */
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
  /** In the queue, while it waits. */
  place: QueuePlace<AdmittedRequest> | undefined;
  /** Where it was in the queue when it came, or permits in use where there is none. */
  position = 0;
  /** When it got its permit, and how many were in use then with its own. */
  admittedMs = 0;
  inFlight = 0;
  /** When the lease of its permit ends. */
  expiresMs = Number.POSITIVE_INFINITY;
  /** Its place among leases; see `Expiring`. */
  heapPlace: number | undefined;
  /** What limits change about it. Undefined: nothing. */
  marks: RequestMarks | undefined;
  /** The call that budgets have let in, until it has ended. Undefined: they follow none. */
  budgeted: BudgetedCall | undefined;
  /** How long a rate limit has held it, in milliseconds. */
  delayedMs = 0;
  /** Lets go of it while it is held. */
  cancelDelay: Cancel | undefined;
  /** Whether its permit is also one of all pools of the service. */
  holdsWhole = false;
  /** Its caller's or route's permit, where those are counted; held from before it waits. */
  keyCount: KeyCount | undefined;
  /** Gives back the same in the fleet's count; undefined where it has none. */
  giveBackShared: (() => void) | undefined;
  /** The last that is known of the response. */
  response: ResponseFacts | undefined;
  /** Who is told; undefined while `begin` runs, which returns what it is told. */
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

  /** What became of it, for `begin` to return while that runs; after it, for who asks. */
  tell(verdict: AdmissionVerdict): void {
    if (this.#call === undefined) this.#verdict = verdict;
    else this.#call.decided(verdict);
  }

  /** What `begin` returns at its end; from then on `call` is told. */
  begun(call: AdmissionCall): AdmissionAnswer {
    this.#call = call;
    return this.#verdict ?? { kind: "asking", ticket: this };
  }

  /** See `callerHashRatio`; only made where a threshold is near. */
  get callerHashRatio(): number {
    this.#callerHashRatio ??= callerHashRatio(this.caller);
    return this.#callerHashRatio;
  }

  /** How it found the queue when it was first asked for, which is while it is decided. */
  queueState(nowMs: number): QueueState {
    this.#queueState ??= this.pool.state(nowMs);
    return this.#queueState;
  }

  /** What is left of its caller's time; undefined where nobody said. */
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
