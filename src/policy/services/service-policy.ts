import type { ConcurrencySettings } from "../../core/concurrency/concurrency-laws.js";
import type { UpstreamPlace } from "../upstream/client-tls.js";
import type { UpstreamProtections } from "../upstream/upstream-policy.js";
import type { AdmissionPolicy } from "./service-admission.js";
import type { PriorityPolicy } from "./service-priority.js";
import type { SignalSource } from "./signal-source.js";

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
