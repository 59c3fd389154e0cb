import type { MetadataValues, ScalarValue } from "../../core/admission/exchange-messages.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { RequestFacts } from "../../policy/cel/request-facts.js";

/** A request whose budgets are checked. */
export interface BudgetedRequest extends RequestFacts {
  /** Facts from its body. Absent: the body was not read. */
  readonly facts?: CallFacts;
  /** Whether it is only counted, and never refused. */
  readonly isObserved: boolean;
}

/** Where a response reports usage, other than in its body. */
export interface ReportingResponse {
  /** Requested headers or trailers, by lower-case name. Absent: none are needed. */
  readonly headers?: ReadonlyMap<string, string>;
  /** Requested dynamic metadata of other filters. Absent: none. */
  readonly metadata?: MetadataValues | undefined;
}

/** The result of a budget check. */
export type BudgetAnswer =
  | {
      readonly kind: "passes";
      /** To be ended exactly once. */
      readonly call: BudgetedCall;
      /** Warnings, annotations and the fallback route. Undefined: none. */
      readonly marks: RequestMarks | undefined;
    }
  | {
      readonly kind: "denied";
      /** The budget that has no room. */
      readonly budget: string;
      /** Undefined: only the end of other calls makes room. */
      readonly retryMs: number | undefined;
    };

/** A call that budgets have admitted. */
export interface BudgetedCall {
  /** For the filter that observes the response: sent along in the namespace `headgate`. */
  readonly metadata: ReadonlyMap<string, ScalarValue>;
  /** Response headers or trailers arrived. They may report the usage. */
  responded(facts: ReportingResponse): void;
  /**
   * The call has ended. Charges its usage. If that is unknown and another filter observes the body,
   * waits for that filter first; otherwise charges what is known. Called exactly once.
   */
  end(end: CallEnd): void;
}

/** How a call ended. */
export interface CallEnd {
  /** Whether the upstream began to respond. */
  readonly hasResponse: boolean;
  /** HTTP status of the response; undefined without one. */
  readonly status: number | undefined;
  /**
   * The upstream may have received the call, and may continue after its stream is cut: without a
   * response, it costs what was reserved. Absent: not received, and it costs nothing.
   */
  readonly mayGoOn?: true;
}

/** The end of a call that the upstream has not received. */
export const unansweredEnd: CallEnd = { hasResponse: false, status: undefined };

/** Checks budgets in the call that admits a request, and ends what they admit. */
export interface BudgetAsker {
  /**
   * @param deadlineMs when the caller stops waiting, on the monotonic clock; Infinity if unknown
   * @param answered called exactly once, possibly before this returns
   */
  ask(request: BudgetedRequest, deadlineMs: number, answered: (answer: BudgetAnswer) => void): void;
}

/** The stream that shows the response of a budgeted call, on any replica. */
export interface UsageObserver {
  /** The response headers that the service needs. */
  responded(headers: ReadonlyMap<string, string>): void;
  /** A piece of the body. The bytes are not kept. */
  body(bytes: Uint8Array): void;
  /** Response trailers. */
  trailers(headers: ReadonlyMap<string, string>): void;
  /** The response is complete, or the stream is over. Called exactly once. */
  end(isComplete: boolean): void;
}

/** Accepts streams that show responses. */
export interface UsageObservers {
  /** Names of the response headers and trailers that it needs, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Names of the fields in `BudgetedCall.metadata`, all of them scalars. */
  readonly fieldNames: ReadonlySet<string>;
  /**
   * Starts to observe a response. Undefined if it is not needed.
   *
   * @param fields metadata of the call, from the stream that decided it; empty if it was refused
   * @param peer the peer that shows it; see `Peer.identity`
   */
  open(fields: ReadonlyMap<string, ScalarValue>, peer: string): UsageObserver | undefined;
}
