import type { Refusal } from "../../core/admission/exchange-messages.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import { refusalCauses } from "../../core/admission/refusal.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { snakeCase } from "../../core/base/text.js";
import type {
  AdmissionCall,
  AdmissionRequest,
  AdmissionTicket,
  AdmissionVerdict,
} from "../../decide/admission/admission-call.js";
import type { Delayed, DelayLine, EventCalendar } from "./calendar.js";
import type { OpenRequest } from "./run-record.js";
import type { EnvoyCall, SimulatedEnvoy } from "./simulated-envoy.js";
import type { HeadgateCall, SimulatedHeadgate } from "./simulated-headgate.js";
import type { SimulatedService } from "./simulated-service.js";
import type { StationJob } from "./station.js";
import type { ServiceCall, WorkerGroup } from "./worker-group.js";

/** End of an attempt, as its caller sees it. */
export type AttemptEnd =
  | { readonly kind: "served" }
  | { readonly kind: "refused"; readonly cause: RefusalCause; readonly retryMs: number }
  | { readonly kind: "failed" }
  | { readonly kind: "timeout" };

/** Caller of an attempt. */
export interface SimulatedAttemptHost {
  readonly calendar: EventCalendar;
  readonly service: SimulatedService;
  readonly patience: DelayLine;
  /** Whether Envoy refuses requests for which Headgate does not answer. */
  readonly deniesWithoutAnswer: boolean;
  /** Called when an attempt ends, exactly once for each that is not cancelled. */
  ended(attempt: SimulatedAttempt, end: AttemptEnd): void;
}

/** Inputs for an attempt. */
interface AttemptParts {
  readonly envoy: SimulatedEnvoy;
  readonly asked: AdmissionRequest;
  readonly request: OpenRequest;
}

/**
 * One attempt of a request on its way through Envoy: rate limits, admission and the service, within
 * its caller's patience. It asks one replica of Headgate for limits and admission.
 */
export class SimulatedAttempt
  implements AdmissionCall, ServiceCall, Delayed, EnvoyCall, HeadgateCall
{
  readonly request: OpenRequest;
  readonly beganMs: number;
  readonly #host: SimulatedAttemptHost;
  readonly #parts: AttemptParts;
  readonly #patience: { waiting: Delayed | undefined };
  #state: "limits" | "admission" | "service" | "over" = "limits";
  /** The replica that it asks; undefined: none is reachable, or it is gone. */
  #headgate: SimulatedHeadgate | undefined;
  #ticket: AdmissionTicket | undefined;
  #workers: WorkerGroup | undefined;
  #job: StationJob | undefined;

  constructor(host: SimulatedAttemptHost, parts: AttemptParts) {
    this.request = parts.request;
    this.#host = host;
    this.#parts = parts;
    this.beganMs = host.calendar.nowMs;
    this.#patience = host.patience.add(this);
  }

  /** Asks the rate limits, if there are any before admission, and then admission. */
  begin(): void {
    const { envoy, asked } = this.#parts;
    envoy.begin(this);
    const headgate = this.#choose();
    if (headgate === undefined) this.unanswered();
    headgate?.askLimits(asked, (answer) => {
      // The answer of a replica that is gone by then is ignored.
      if (this.#state !== "limits" || this.#headgate !== headgate) return;
      if (answer.kind === "passes") this.#ask(headgate);
      else this.#end({ kind: "refused", cause: "rateLimit", retryMs: answer.retryMs });
    });
  }

  /** Takes the decision of admission if it was not made at once. */
  decided(verdict: AdmissionVerdict): void {
    if (this.#headgate === undefined) return;
    if (verdict.kind === "refused") this.#end(refusedBy(verdict.refusal));
    else if (verdict.kind === "admitted") this.#enter();
  }

  started(): void {
    this.#workers?.noteStarted(this);
  }

  ended(): void {
    this.#workers?.noteEnded(this);
    if (this.#state === "over") return;
    this.#ticket?.responded(ok);
    this.#ticket?.end("completed");
    this.#end({ kind: "served" });
  }

  lost(): void {
    this.#giveUp();
    this.#fail();
  }

  envoyLost(): void {
    if (this.#host.service.stopsAbandoned) this.#giveUp();
    this.#ticket?.end("broken");
    this.#end({ kind: "failed" });
  }

  detach(): void {
    if (this.#headgate !== undefined) this.#parts.envoy.forget(this.#headgate);
    this.#headgate = undefined;
    this.#ticket = undefined;
  }

  unanswered(): void {
    if (this.#state === "over") return;
    if (this.#host.deniesWithoutAnswer) {
      this.#giveUp();
      this.#fail();
    } else if (this.#state !== "service") {
      const headgate = this.#state === "limits" ? this.#choose() : undefined;
      if (headgate === undefined) this.#enter();
      else this.#ask(headgate);
    }
  }

  /** Ends the attempt because its caller's patience is over. */
  elapsed(): void {
    this.#leave();
    this.#end({ kind: "timeout" });
  }

  /** Ends the attempt because its caller has another response. */
  cancel(): void {
    this.#leave();
    this.#close();
  }

  #choose(): SimulatedHeadgate | undefined {
    this.#headgate = this.#parts.envoy.choose();
    this.#headgate?.begin(this);
    return this.#headgate;
  }

  #ask(headgate: SimulatedHeadgate): void {
    this.#state = "admission";
    const answer = headgate.admission.begin(this.#parts.asked, this);
    if (answer.kind !== "refused") this.#ticket = answer.ticket;
    if (answer.kind !== "asking") this.decided(answer);
  }

  #enter(): void {
    this.#state = "service";
    this.#workers = this.#host.service.groupFor(this.#parts.envoy.zone);
    this.#job = this.#workers?.enter(this);
    if (this.#job === undefined) this.#fail();
  }

  /** Fails like Envoy: a lost connection gives 503, as does a full queue of the service. */
  #fail(): void {
    if (this.#state === "over") return;
    this.#ticket?.responded(unavailable);
    this.#ticket?.end("completed");
    this.#end({ kind: "failed" });
  }

  /** Tells the service and admission that the caller no longer waits. */
  #leave(): void {
    if (this.#host.service.stopsAbandoned) this.#giveUp();
    this.#ticket?.end("left");
  }

  #giveUp(): void {
    this.#workers?.noteEnded(this);
    this.#job?.leave();
  }

  #end(end: AttemptEnd): void {
    this.#close();
    this.#host.ended(this, end);
  }

  #close(): void {
    this.#state = "over";
    this.#patience.waiting = undefined;
    this.#parts.envoy.end(this, this.#headgate);
    this.#headgate?.end(this);
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

/**
 * Converts a refusal. Its cause comes from Envoy's response details, its retry time from a header.
 */
function refusedBy({ details, headers }: Refusal): AttemptEnd {
  const retryAfter = headers.find(({ name }) => name === "retry-after")?.value ?? "0";
  const cause = causeOf.get(details) ?? "ownOverload";
  return { kind: "refused", cause, retryMs: Number(retryAfter) * 1_000 };
}
