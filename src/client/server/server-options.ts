import type { Priority } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { Clock, Random } from "../../core/base/clock.js";
import type { ConcurrencyOptions, QueueOptions } from "../admission.js";

/** A request as admission sees it: before its body is read. */
export interface ServerRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly path: string;
  /** The address of the peer, which may be a proxy; undefined where there is none. */
  readonly remoteAddress: string | undefined;
  /** A header by its name in lower case; several of one name are joined by commas. */
  header(name: string): string | undefined;
}

/** How the class of a request is found: what passes uncounted, `classify`, the header, the rest. */
export interface PriorityOptions {
  /** The class by the service's own rules; undefined: they have none for this request. */
  readonly classify?: (request: ServerRequest) => Priority | undefined;
  /**
   * The header that states a class; the proxy layer and `headgate/client` send
   * `x-request-priority`. Default: none is believed, since anybody can send one
   */
  readonly header?: string;
  /** Whether the header of a request is believed. Default: each, once `header` is given */
  readonly trust?: (request: ServerRequest) => boolean;
  /** The class of all others. Default `normal` */
  readonly default?: Priority;
  /** Paths that are neither counted nor refused; `/static/*` is all below. Default: probes */
  readonly bypassPaths?: readonly string[];
  /** Paths whose requests are critical unless something above says otherwise. Default: logins */
  readonly authPaths?: readonly string[];
}

/** How many requests may be in flight, as a law learns it. */
export interface ServerConcurrencyOptions
  extends Pick<ConcurrencyOptions, "initial" | "min" | "max"> {
  /** Default `knee` */
  readonly law?: "knee" | "gradient" | "vegas" | "aimd";
}

/** Deadlines that callers state in `grpc-timeout`, `x-envoy-expected-rq-timeout-ms` or a header. */
export interface ServerDeadlineOptions {
  /** A request with less left is refused, in milliseconds. Default 5 */
  readonly minRemainingMs?: number;
  /** Another header that states the time left, in milliseconds. Default: none */
  readonly header?: string;
}

/** A load from elsewhere: 0 is idle, 1 is full. What is no number from 0 up says nothing. */
export type LoadSource =
  | (() => number)
  /** A reader of the host; its ratios, where there are any, go into the load report. */
  | {
      loadRatio(): number;
      readonly cpuRatio?: number | undefined;
      readonly memoryRatio?: number | undefined;
    };

/** When refused callers may come back. */
export interface RetryAfterOptions {
  /** The least `retry-after`, in whole seconds from 1. Default 1 */
  readonly secondsMin?: number;
  /** Added at most, as a share of it, so that they do not come together. Default 0.5 */
  readonly jitterRatio?: number;
}

/** When answers are degraded; what is left out has its default. */
export interface BrownoutOptions {
  /**
   * The load from which a class is served degraded answers, above 0. Default: low 0.7, normal 0.85,
   * high 0.9, critical 0.95
   */
  readonly fromRatios?: Partial<Readonly<Record<Priority, number>>>;
  /** How far below that the load has to fall before the class has whole answers. Default 0.2 */
  readonly bandRatio?: number;
  /** Over which time the load is averaged: the time constant, in milliseconds. Default 1,000 */
  readonly memoryMs?: number;
}

/** What admission to a service does. Names and defaults are those of the policy language. */
export interface ServerAdmissionOptions {
  /** Names the service in refusals that name one, and in metrics. */
  readonly name: string;
  /** Requests in flight that nobody may exceed, from 1. Default: only the law bounds them */
  readonly maxInFlight?: number;
  /** The law that learns the limit. Default: `knee` without `maxInFlight`, else none */
  readonly concurrency?: ServerConcurrencyOptions | false;
  /**
   * Requests that wait for a permit. Default: none wait. Where it is given: 100 places, 2,000 ms
   * and no CoDel
   */
  readonly queue?: QueueOptions;
  readonly priority?: PriorityOptions;
  /** `false`: deadlines are not read. */
  readonly deadline?: ServerDeadlineOptions | false;
  /**
   * The load from which each class is refused, above 0; a class that is left out has its default.
   * Default: low 0.75, normal 0.9, high 0.95; critical requests are not refused for what is in
   * flight. `false`: no class is refused before another one
   */
  readonly shedAt?: Partial<Readonly<Record<Priority, number>>> | false;
  /** Loads beside requests in flight; the largest counts. Default: none */
  readonly load?: LoadSource | readonly LoadSource[];
  /**
   * Tells callers apart, so that near a threshold the same ones are refused each time. Default: it
   * is drawn by lot
   */
  readonly caller?: (request: ServerRequest) => string | undefined;
  /** When answers are degraded, by the load. */
  readonly brownout?: BrownoutOptions;
  readonly retryAfter?: RetryAfterOptions;
  /** HTTP status of a refusal instead of its cause's own, 400 to 599, by cause. */
  readonly statusByCause?: Readonly<Partial<Record<RefusalCause, number>>>;
  /** Whether refusals name the service and the cause in `x-headgate-rule`. Default false */
  readonly tellRule?: boolean;
  /**
   * Whether the response to a request reports the load, in `endpoint-load-metrics`. It tells
   * whoever reads it how busy the service is. Default: each does
   */
  readonly loadReport?: boolean | ((request: ServerRequest) => boolean);
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
  /** For tests. Default: the process's own */
  readonly random?: Random;
}
