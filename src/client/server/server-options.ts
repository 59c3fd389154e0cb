import type { Priority } from "../../core/admission/priority.js";
import type { RefusalCause } from "../../core/admission/refusal.js";
import type { Clock, Random } from "../../core/base/clock.js";
import type { ConcurrencyOptions, QueueOptions } from "../admission.js";

/** A request as admission sees it: before its body is read. */
export interface ServerRequest {
  readonly method: string;
  /** Path and query, as received. */
  readonly path: string;
  /** Address of the peer, which may be a proxy. Undefined if there is none. */
  readonly remoteAddress: string | undefined;
  /** Returns a header by its lower-case name. Multiple values are joined by commas. */
  header(name: string): string | undefined;
}

/** How the class of a request is found: bypass paths, `classify`, the header, then the rest. */
export interface PriorityOptions {
  /** Returns the class by the service's own rules. Undefined if none matches this request. */
  readonly classify?: (request: ServerRequest) => Priority | undefined;
  /**
   * Header that states a class; the proxy layer and `headgate/client` send `x-request-priority`.
   * Default: no header is trusted, because anyone can send one
   */
  readonly header?: string;
  /** Whether to trust the header of a request. Default: always, if `header` is given */
  readonly trust?: (request: ServerRequest) => boolean;
  /** Class of all other requests. Default `normal` */
  readonly default?: Priority;
  /** Paths that are neither counted nor refused; `/static/*` is all below it. Default: probes */
  readonly bypassPaths?: readonly string[];
  /** Paths whose requests are critical unless decided otherwise above. Default: logins */
  readonly authPaths?: readonly string[];
}

/** Limit of the requests in flight, which an algorithm learns. */
export interface ServerConcurrencyOptions
  extends Pick<ConcurrencyOptions, "initial" | "min" | "max"> {
  /** Default `knee` */
  readonly law?: "knee" | "gradient" | "vegas" | "aimd";
}

/** Deadlines that callers state in `grpc-timeout`, `x-envoy-expected-rq-timeout-ms` or a header. */
export interface ServerDeadlineOptions {
  /** Minimum time left for a request to be admitted, in milliseconds. Default 5 */
  readonly minRemainingMs?: number;
  /** Another header that states the time left, in milliseconds. Default: none */
  readonly header?: string;
}

/** An external load: 0 is idle, 1 is full. Values that are not a number from 0 are ignored. */
export type LoadSource =
  | (() => number)
  /** A reader of the host. Its ratios, if it has any, go into the load report. */
  | {
      loadRatio(): number;
      readonly cpuRatio?: number | undefined;
      readonly memoryRatio?: number | undefined;
    };

/** When refused callers may retry. */
export interface RetryAfterOptions {
  /** Minimum `retry-after`, in whole seconds from 1. Default 1 */
  readonly secondsMin?: number;
  /** Maximum addition, as a ratio, so that callers do not return at the same time. Default 0.5 */
  readonly jitterRatio?: number;
}

/** When answers are degraded. Omitted options have their defaults. */
export interface BrownoutOptions {
  /**
   * Load from which a class gets degraded answers, above 0. Default: low 0.7, normal 0.85, high
   * 0.9, critical 0.95
   */
  readonly fromRatios?: Partial<Readonly<Record<Priority, number>>>;
  /** How far the load must fall below that before a class has whole answers again. Default 0.2 */
  readonly bandRatio?: number;
  /** Time constant with which the load is averaged, in milliseconds. Default 1,000 */
  readonly memoryMs?: number;
}

/** Options of an admission in a service. Names and defaults are those of the policy language. */
export interface ServerAdmissionOptions {
  /** Name of the service in metrics, and in refusals that contain one. */
  readonly name: string;
  /** Hard limit of requests in flight, from 1. Default: only the algorithm limits them */
  readonly maxInFlight?: number;
  /** Algorithm that learns the limit. Default: `knee` without `maxInFlight`, otherwise none */
  readonly concurrency?: ServerConcurrencyOptions | false;
  /**
   * Queue of requests that wait for a permit. Default: none. The defaults of a queue are 100
   * places, 2,000 ms and no CoDel
   */
  readonly queue?: QueueOptions;
  readonly priority?: PriorityOptions;
  /** `false`: deadlines are ignored. */
  readonly deadline?: ServerDeadlineOptions | false;
  /**
   * Load from which each class is refused, above 0. A class that is omitted has its default: low
   * 0.75, normal 0.9, high 0.95; critical requests are not refused because of requests in flight.
   * `false`: no class is refused before another one
   */
  readonly shedAt?: Partial<Readonly<Record<Priority, number>>> | false;
  /** Loads in addition to requests in flight. The largest counts. Default: none */
  readonly load?: LoadSource | readonly LoadSource[];
  /**
   * Identifies the caller, so that near a threshold the same callers are refused each time.
   * Default: random
   */
  readonly caller?: (request: ServerRequest) => string | undefined;
  /** When answers are degraded, by the load. */
  readonly brownout?: BrownoutOptions;
  readonly retryAfter?: RetryAfterOptions;
  /** HTTP status of refusals by cause, 400 to 599, instead of the default of the cause. */
  readonly statusByCause?: Readonly<Partial<Record<RefusalCause, number>>>;
  /** Whether refusals name the service and the cause in `x-headgate-rule`. Default false */
  readonly tellRule?: boolean;
  /**
   * Whether the response to a request reports the load, in `endpoint-load-metrics`. The report
   * shows its readers how busy the service is. Default: true
   */
  readonly loadReport?: boolean | ((request: ServerRequest) => boolean);
  /** For tests. Default: the process's own */
  readonly clock?: Clock;
  /** For tests. Default: the process's own */
  readonly random?: Random;
}
