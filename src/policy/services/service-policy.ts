import type { SeriesSelector } from "../../core/base/series-selector.js";
import type { ConcurrencySettings } from "../../core/concurrency/concurrency-laws.js";
import type {
  AdmissionBlock,
  DeadlineSettings,
  EstimatedWaitSettings,
  GateSettings,
  LoadSettings,
  Priority,
  QueueSettings,
  RejectSettings,
  ShedThresholds,
  ThrottleSettings,
} from "../../core/settings/admission-settings.js";
import type { UpstreamPlace } from "../upstream/client-tls.js";
import type { UpstreamProtections } from "../upstream/upstream-policy.js";

/** One upstream service as the policy has it: plain data, so it may cross threads. */
export interface ServicePolicy extends UpstreamProtections {
  readonly name: string;
  readonly namespace: string | undefined;
  /** Values of `:authority` that mean it, in lower case, without a port; may be empty. */
  readonly hosts: readonly string[];
  /** Where it listens; undefined where only Envoy knows. */
  readonly upstream: UpstreamPlace | undefined;
  /** Limits that are asked for in the same call; undefined: none. */
  readonly rateLimit: ServiceRateLimit | undefined;
  readonly priority: PriorityPolicy;
  /** Undefined: admission is off, and every request passes. */
  readonly admission: AdmissionPolicy | undefined;
  /** The law that sets the limit; undefined: only `admission.maxInFlight` holds. */
  readonly concurrency: ServiceConcurrency | undefined;
  /** Labels of the pods that serve it, for selectors. Default `app: <name>`. */
  readonly workloadLabels: Readonly<Record<string, string>>;
}

/** Which descriptors a service's requests are charged by. */
export interface ServiceRateLimit {
  readonly domain: string;
  /** One whose part is missing in a request is left out, as in Envoy. */
  readonly descriptors: readonly ServiceDescriptor[];
  /** Whether ext_proc asks for them, so that Envoy needs no RLS call. Default false. */
  readonly inExtProc: boolean;
}

/** One descriptor, and what it costs. */
export interface ServiceDescriptor {
  readonly parts: readonly DescriptorPart[];
  readonly hits: DescriptorHits;
  /** Whether its hits are given back. Default false. */
  readonly isRefund: boolean;
  /** Asked before the request goes on, or told after its response. Default "request". */
  readonly when: "request" | "streamDone";
}

/** How many hits a descriptor costs. */
export type DescriptorHits =
  /** A whole number from 0. Default 1. */
  | { readonly kind: "fixed"; readonly count: number }
  /** A number that Envoy finds. Source: Envoy, "Access logging", command operators. */
  | { readonly kind: "format"; readonly format: string };

/**
 * Where one entry of a descriptor comes from. Those beside `AskablePart` only Envoy's own filter
 * can make. Source: envoy.config.route.v3.RateLimit.Action.
 */
export type DescriptorPart =
  | AskablePart
  | { readonly kind: "sourceCluster"; readonly key: string }
  | { readonly kind: "destinationCluster"; readonly key: string }
  | {
      readonly kind: "maskedAddress";
      readonly key: string;
      /** Bits that count, 0 to 32. Default 32. */
      readonly v4PrefixBits: number;
      /** 0 to 128. Default 128. */
      readonly v6PrefixBits: number;
    }
  | { readonly kind: "query"; readonly parameter: string; readonly key: string }
  | {
      readonly kind: "headerMatch" | "queryMatch";
      readonly key: string;
      readonly value: string;
      /** Whether all must match, or at least one must not. Default true. */
      readonly isMatch: boolean;
      readonly matches: readonly TextMatch[];
    }
  | {
      readonly kind: "metadata";
      readonly key: string;
      readonly from: "dynamic" | "route";
      readonly namespace: string;
      readonly path: readonly string[];
      /** Where there is none; undefined: the descriptor is left out. */
      readonly fallback: string | undefined;
    }
  /** CEL over Envoy's attributes, as Envoy evaluates it. */
  | { readonly kind: "expression"; readonly key: string; readonly cel: string };

/** Parts that ext_proc can ask for as well. */
export type AskablePart =
  | { readonly kind: "remoteAddress"; readonly key: string }
  | { readonly kind: "header"; readonly header: string; readonly key: string }
  | { readonly kind: "fixed"; readonly key: string; readonly value: string };

/** A header or a query parameter, and what it has to be. */
export interface TextMatch {
  readonly name: string;
  readonly test: "exact" | "prefix" | "suffix" | "contains" | "regex" | "present";
  /** Empty for `present`. */
  readonly text: string;
}

/** How a request's class is found: bypass, then rules in order, then the header, then default. */
export interface PriorityPolicy {
  /** Header that states the class, in lower case. Default `x-request-priority`. */
  readonly header: string;
  /** Default "normal". */
  readonly usual: Priority;
  readonly rules: readonly PriorityRule[];
  /**
   * Paths that are neither counted nor refused: each as a whole; with `/*` at its end, it and all
   * below it.
   */
  readonly bypassPaths: readonly string[];
  /** Paths, as above, that are critical where no rule and no trusted header says otherwise. */
  readonly authPaths: readonly string[];
  /** Who may state a class in the header; empty: nobody, and the header is not looked at. */
  readonly trust: TrustPolicy;
}

/** Who is believed: any that matches. */
export interface TrustPolicy {
  /** Everybody, as the policy says in so many words (`anyone: true`). */
  readonly anyone: boolean;
  /** Networks of `source.address`, as CIDR. */
  readonly sources: readonly string[];
  /**
   * Names in the caller's certificate (`connection.uri_san_peer_certificate`): exact, or ending in
   * `*` for any rest.
   */
  readonly principals: readonly string[];
}

/** A condition in CEL over `request` and `source`, type-checked, and the class it gives. */
export interface PriorityRule {
  readonly when: string;
  readonly is: Priority;
}

/** What stands before a service; each block undefined where the policy leaves it out. */
export interface AdmissionPolicy {
  /** Permits for the fleet; undefined: as the concurrency law says alone. */
  readonly maxInFlight: number | undefined;
  /** Permits of one caller or route; undefined: no such bound. */
  readonly maxInFlightPer: KeyedPermits | undefined;
  readonly shedAt: ShedThresholds | undefined;
  readonly deadline: DeadlineSettings | undefined;
  readonly queue: QueueSettings | undefined;
  readonly estimatedWait: EstimatedWaitSettings | undefined;
  readonly gate: GateSettings | undefined;
  readonly throttle: ThrottleSettings | undefined;
  readonly load: LoadSettings | undefined;
  readonly reject: RejectSettings;
  /** Who a caller is, for hashes, throttles and keyed permits. Default the remote address. */
  readonly caller: CallerKey;
  /** A client that gives up after this long counts as served too late; undefined: its deadline. */
  readonly lateAfterMs: number | undefined;
  /** Share of exchanges whose response headers are looked at, above 0 to 1. Default 1. */
  readonly sampleRatio: number;
  /**
   * What becomes of requests while Headgate itself is overloaded: all pass undecided, or all but
   * critical ones are refused. Default as `proxies.headgate.failureModeDeny` says for no answer.
   */
  readonly ownOverload: OwnOverloadMode;
  /** Blocks that decide and count, and refuse nobody. */
  readonly dryRun: ReadonlySet<AdmissionBlock>;
}

/** One of `ownOverloadModes`. */
export type OwnOverloadMode = (typeof ownOverloadModes)[number];

/** What may become of requests while Headgate itself is overloaded. */
export const ownOverloadModes = ["allow", "refuse"] as const;

/** What tells callers apart. */
export type CallerKey =
  | { readonly kind: "remoteAddress" }
  | { readonly kind: "header"; readonly header: string };

/** Permits by caller or route. */
export interface KeyedPermits {
  readonly per: CallerKey | { readonly kind: "route" };
  readonly max: number;
  /** Keys that are counted at once; above it new ones share one count. Default 10,000. */
  readonly keysMax: number;
}

/** The law of a service, and by what it is split. */
export interface ServiceConcurrency {
  readonly settings: ConcurrencySettings;
  /** One limit a key, such as a database; undefined: one for the service. */
  readonly per: ConcurrencyKey | undefined;
  /** Where readings of `signal` come from, as they are polled. */
  readonly signal: SignalSource | undefined;
  /** What the law listens to. Default ["extProc"]. */
  readonly sources: readonly ("extProc" | "envoyMetrics" | "loadReports")[];
  /** Where the limit goes. Default none. */
  readonly feedback: readonly ("circuitBreakers" | "adaptiveConcurrency")[];
}

/** By which header a limit is split. */
export interface ConcurrencyKey {
  readonly header: string;
  /** Keys that metrics may name; all others are `other` there. */
  readonly names: readonly string[];
  /** Keys held at once. Default 1,000. */
  readonly keysMax: number;
}

/** Readings from elsewhere: where they are, how often they are asked for, how long they hold. */
export interface SignalSource {
  readonly place: SignalPlace;
  /** Time from one question to the next. Default 5,000. */
  readonly everyMs: number;
  /** The longest that one question may take, at most `everyMs`. Default 2,000, or `everyMs`. */
  readonly timeoutMs: number;
  /** How long a reading holds when no newer one comes. Default six times `everyMs`. */
  readonly staleAfterMs: number;
  /** Which bound of the limit holds then. Default "max": watching less is no reason to refuse. */
  readonly whenMissing: "min" | "max";
  /** Keys with thresholds of their own; each is one of `per.names`. */
  readonly thresholds: readonly SignalThreshold[];
}

/** What a reading means for one key. */
export interface SignalThreshold {
  readonly name: string;
  /** As in `SignalSettings`. */
  readonly target: number;
  readonly critical: number;
}

/** Where a reading is. Series are added up, those of one value of the label `by` each. */
export type SignalPlace =
  /** An instant query; where `server` is undefined the process knows whom to ask. */
  | {
      readonly kind: "prometheus";
      readonly query: string;
      readonly server: string | undefined;
      readonly by: string | undefined;
    }
  /** A page in the text format of Prometheus, as an exporter publishes it. */
  | {
      readonly kind: "metrics";
      readonly url: string;
      readonly select: SeriesSelector;
      readonly by: string | undefined;
    }
  /** A key of the store: a number in a text, the length of a list, or a hash of numbers by key. */
  | { readonly kind: "redis"; readonly key: string }
  /** A JSON document; `pointer` leads to a number, or to an object of numbers by key. */
  | { readonly kind: "http"; readonly url: string; readonly pointer: readonly string[] }
  | { readonly kind: "fixed"; readonly reading: number };
