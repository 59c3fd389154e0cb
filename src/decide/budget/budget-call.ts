import type { MetadataValues, ScalarValue } from "../../core/admission/exchange-messages.js";
import type { CallFacts } from "../../core/budgets/usage.js";
import type { RequestMarks } from "../../core/limits/request-marks.js";
import type { RequestFacts } from "../../policy/cel/request-facts.js";

/** A request that budgets are asked for. */
export interface BudgetedRequest extends RequestFacts {
  /** What its body says. Absent: it was not read. */
  readonly facts?: CallFacts;
  /** Whether it is only counted, and never refused. */
  readonly isObserved: boolean;
}

/** Where a response reports usage, beside its body. */
export interface ReportingResponse {
  /** Wanted headers, or trailers, by lower-case name. Absent: they are of no interest. */
  readonly headers?: ReadonlyMap<string, string>;
  /** Wanted dynamic metadata of other filters. Absent: none. */
  readonly metadata?: MetadataValues | undefined;
}

/** What budgets say to a request. */
export type BudgetAnswer =
  | {
      readonly kind: "passes";
      /** To be ended exactly once. */
      readonly call: BudgetedCall;
      /** Warnings, annotations, and where it goes instead; undefined: nothing. */
      readonly marks: RequestMarks | undefined;
    }
  | {
      readonly kind: "denied";
      /** The budget that has no room. */
      readonly budget: string;
      /** Undefined: only other calls' ends help. */
      readonly retryMs: number | undefined;
    };

/** One call that budgets have let in. */
export interface BudgetedCall {
  /** For the filter that observes the response: goes with it in the namespace `headgate`. */
  readonly metadata: ReadonlyMap<string, ScalarValue>;
  /** Response headers or trailers came: they may report the usage. */
  responded(facts: ReportingResponse): void;
  /**
   * The call has ended. Charges its usage; where that is not known and another filter observes the
   * body, waits for that one first, and charges what is known otherwise. Exactly once.
   */
  end(end: CallEnd): void;
}

/** How a call ended. */
export interface CallEnd {
  /** Whether the upstream began to answer. */
  readonly hasResponse: boolean;
  /** HTTP status of the response; undefined without one. */
  readonly status: number | undefined;
  /**
   * The upstream may have it, and go on with it when its stream is cut: without an answer it costs
   * what was reserved. Absent: the upstream has not seen it, and it costs nothing.
   */
  readonly mayGoOn?: true;
}

/** The end of a call that the upstream has not seen. */
export const unansweredEnd: CallEnd = { hasResponse: false, status: undefined };

/** Asks budgets in the call that admits a request, and ends what they let in. */
export interface BudgetAsker {
  /**
   * @param deadlineMs when its caller stops waiting, on the monotonic clock; Infinity when unknown
   * @param answered told exactly once, maybe before this returns
   */
  ask(request: BudgetedRequest, deadlineMs: number, answered: (answer: BudgetAnswer) => void): void;
}

/** The stream that shows the response of a budgeted call, on whichever replica it lands. */
export interface UsageObserver {
  /** Response headers, of which the service wants these. */
  responded(headers: ReadonlyMap<string, string>): void;
  /** A piece of the body. The bytes are not kept. */
  body(bytes: Uint8Array): void;
  /** Response trailers. */
  trailers(headers: ReadonlyMap<string, string>): void;
  /** The response is complete, or the stream is over. Exactly once. */
  end(isComplete: boolean): void;
}

/** Takes streams that show responses. */
export interface UsageObservers {
  /** Names of response headers and trailers that it wants to see, in lower case. */
  readonly responseHeaderNames: ReadonlySet<string>;
  /** Names of the fields that `BudgetedCall` gives to the response, all of them scalars. */
  readonly fieldNames: ReadonlySet<string>;
  /**
   * Begins with a response; undefined where it is of no interest.
   *
   * @param fields what the stream that asked has said of the call; empty where it refused it
   * @param peer who shows it; see `Peer.identity`
   */
  open(fields: ReadonlyMap<string, ScalarValue>, peer: string): UsageObserver | undefined;
}
