import type { Refusal } from "../../core/admission/exchange-messages.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import { refusalCauses } from "../../core/admission/refusal.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { snakeCase } from "../../core/base/snake-case.js";
import type {
  AdmissionCall,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../decide/admission/admission-call.js";
import type { Delayed, DelayLine, EventCalendar } from "./calendar.js";
import type { OpenRequest } from "./run-record.js";
import type { SimulatedHeadgate } from "./simulated-headgate.js";
import type { ServiceCall, SimulatedService } from "./simulated-service.js";
import type { StationJob } from "./station.js";

/** How an attempt ended, as its caller sees it. */
export type AttemptEnd =
  | { readonly kind: "served" }
  | { readonly kind: "refused"; readonly cause: RefusalCause; readonly retryMs: number }
  | { readonly kind: "failed" }
  | { readonly kind: "timeout" };

/** Whose attempt it is. */
export interface AttemptHost {
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly patience: DelayLine;
  /** An attempt of a request is over: told exactly once for each. */
  ended(request: OpenRequest, end: AttemptEnd, beganMs: number): void;
}

/** What an attempt is made with. */
interface AttemptParts {
  readonly headgate: SimulatedHeadgate;
  readonly asked: AdmissionRequest;
  readonly request: OpenRequest;
}

/**
 * One attempt of a request, on the way that it takes through Envoy: rate limits, admission, the
 * service, and its caller's patience over all of it.
 */
export class Attempt implements AdmissionCall, ServiceCall, Delayed {
  readonly #host: AttemptHost;
  readonly #parts: AttemptParts;
  readonly #beganMs: number;
  readonly #patience: { waiting: Delayed | undefined };
  #isOver = false;
  #ticket: AdmissionTicket | undefined;
  #job: StationJob | undefined;

  constructor(host: AttemptHost, parts: AttemptParts) {
    this.#host = host;
    this.#parts = parts;
    this.#beganMs = host.calendar.nowMs;
    this.#patience = host.patience.add(this);
  }

  /** Asks the rate limits, where there are some before admission, and then admission. */
  begin(): void {
    const { headgate, asked } = this.#parts;
    headgate.askLimits(asked, (answer) => {
      if (this.#isOver) return;
      if (answer.kind === "passes") this.#ask();
      else this.#end({ kind: "refused", cause: "rateLimit", retryMs: answer.retryMs });
    });
  }

  /** What became of it at admission, where that was not known at once. */
  decided(verdict: AdmissionVerdict): void {
    if (verdict.kind === "refused") this.#end(refusedBy(verdict.refusal));
    else if (verdict.kind === "admitted") this.#enter();
  }

  started(): void {
    this.#host.service.noteStarted(this);
  }

  ended(): void {
    this.#host.service.noteEnded(this);
    if (this.#isOver) return;
    this.#ticket?.responded(ok);
    this.#ticket?.end("completed");
    this.#end({ kind: "served" });
  }

  lost(): void {
    this.#giveUp();
    this.#fail();
  }

  #ask(): void {
    const { headgate, asked } = this.#parts;
    const answer = headgate.admission.begin(asked, this);
    if (answer.kind !== "refused") this.#ticket = answer.ticket;
    if (answer.kind !== "asking") this.decided(answer);
  }

  #enter(): void {
    this.#job = this.#host.service.enter(this);
    if (this.#job === undefined) this.#fail();
  }

  /** What Envoy says of a lost connection is 503, as a service without a place does. */
  #fail(): void {
    if (this.#isOver) return;
    this.#ticket?.responded(unavailable);
    this.#ticket?.end("completed");
    this.#end({ kind: "failed" });
  }

  /** Its caller's patience is over. */
  elapsed(): void {
    if (this.#host.service.stopsAbandoned) this.#giveUp();
    this.#ticket?.end("left");
    this.#end({ kind: "timeout" });
  }

  #giveUp(): void {
    this.#host.service.noteEnded(this);
    this.#job?.leave();
  }

  #end(end: AttemptEnd): void {
    this.#isOver = true;
    this.#patience.waiting = undefined;
    this.#host.ended(this.#parts.request, end, this.#beganMs);
  }
}

const ok = {
  status: httpStatuses.ok,
  grpcStatus: undefined,
  isOverloaded: false,
  loadMetrics: undefined,
};
const unavailable = { ...ok, status: httpStatuses.serviceUnavailable };

const causeOf: ReadonlyMap<string, RefusalCause> = new Map(
  refusalCauses.map((cause) => [`headgate_${snakeCase(cause)}`, cause]),
);

/** A refusal names its cause where Envoy's logs have it, and says when to come back. */
function refusedBy({ details, headers }: Refusal): AttemptEnd {
  const retryAfter = headers.find(({ name }) => name === "retry-after")?.value ?? "0";
  const cause = causeOf.get(details) ?? "ownOverload";
  return { kind: "refused", cause, retryMs: Number(retryAfter) * 1_000 };
}
