import type { Rule } from "../../core/limits/limit.js";
import type { BudgetPolicy } from "../../policy/budgets/budget-policy.js";
import type { PolicyLocation } from "../../policy/policy-places.js";
import type { ProxyPolicy } from "../../policy/proxies/proxies.js";
import type { QuotaPolicy } from "../../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import type { Document } from "./document.js";
import type { ExistingObject } from "./existing-object.js";
import type { RatedId, Severity } from "./generate-problems.js";

/** The policy in the form that generators take. */
export interface GeneratedPolicy {
  /** `metadata.name`. */
  readonly name: string;
  /** Short hash of the policy's content without its comments: 12 hex digits. */
  readonly hash: string;
  /** The policy's texts, for targets that include the policy in their output. */
  readonly texts: readonly { readonly file: string; readonly text: string }[];
  readonly domains: readonly string[];
  readonly rules: readonly Rule[];
  readonly services: readonly ServicePolicy[];
  readonly quotas: readonly QuotaPolicy[];
  readonly waitingRooms: readonly RoomPolicy[];
  readonly budgets: readonly BudgetPolicy[];
  readonly proxies: ProxyPolicy;
}

/** A version of Envoy, Istio or Envoy Gateway. */
export interface MinorVersion {
  readonly major: number;
  readonly minor: number;
}

/** Options that a person chooses, in addition to the policy. */
export interface GenerateOptions {
  /** Version of Envoy to generate for. Default 1.40; at least 1.30. */
  readonly envoyVersion: MinorVersion;
  /** Version of Istio. Default 1.30; at least 1.22. */
  readonly istioVersion: MinorVersion;
  /** Version of Envoy Gateway. Default 1.6; at least 1.2. */
  readonly gatewayVersion: MinorVersion;
  /** Complete proxies, or fragments to merge into existing ones. Default "bootstrap". */
  readonly form: "bootstrap" | "fragments";
  /** Roles of the proxies to generate, for `envoy` and `istio`. Default both. */
  readonly roles: readonly ("sidecar" | "edge")[];
  /** Namespace of Headgate, and of objects whose service names no namespace. */
  readonly namespace: string;
  /** Number of Headgate replicas. Default 2. */
  readonly replicas: number;
  /** Whether Headgate may serve proxies that present no certificate. Default false. */
  readonly withoutClientCertificates: boolean;
  /** Image of Headgate. Undefined: `headgate` with this version. */
  readonly image?: ImageName;
  /** URL of the runbook, no fragment; `*` is the alert's name. Undefined: next to the rules. */
  readonly runbookUrl?: string;
  /** Objects of the user into which `istio` and `gateway` merge their settings. Default none. */
  readonly existing: readonly ExistingObject[];
}

/** A container image. The digest takes precedence over the tag. */
export interface ImageName {
  readonly repository: string;
  readonly tag?: string;
  /** `sha256:` and 64 digits. */
  readonly digest?: string;
}

/** A setting of the policy that a target cannot express, or should not. */
export interface GenerateProblem {
  /** `HG3xx`: cannot be expressed; `HG4xx`: a lint. Rows in `generate-problems.ts`. */
  readonly id: string;
  readonly spot: PolicyLocation;
  readonly message: string;
  /** The nearest alternative, or what to do. */
  readonly hint: string;
  readonly severity: Severity;
}

/** A problem whose severity comes from its row. */
export type TargetProblem = RatedId & Pick<GenerateProblem, "spot" | "message" | "hint">;

/** Documents and warnings. There are no documents if there is an error. */
export interface Generated {
  readonly documents: readonly Document[];
  readonly problems: readonly GenerateProblem[];
}

/** Generates the documents of one target. Pure: the same policy and options give the same bytes. */
export type Generator = (policy: GeneratedPolicy, options: GenerateOptions) => Generated;
