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

/** A policy as generators take it. */
export interface GeneratedPolicy {
  /** `metadata.name`. */
  readonly name: string;
  /** A short hash of what it means, whatever its comments: 12 hex digits. */
  readonly hash: string;
  /** The texts themselves, for targets that carry the policy along. */
  readonly texts: readonly { readonly file: string; readonly text: string }[];
  readonly domains: readonly string[];
  readonly rules: readonly Rule[];
  readonly services: readonly ServicePolicy[];
  readonly quotas: readonly QuotaPolicy[];
  readonly waitingRooms: readonly RoomPolicy[];
  readonly budgets: readonly BudgetPolicy[];
  readonly proxies: ProxyPolicy;
}

/** A version as Envoy, Istio and Envoy Gateway count them. */
export interface MinorVersion {
  readonly major: number;
  readonly minor: number;
}

/** What a person chooses beside the policy. */
export interface GenerateOptions {
  /** Envoy that the configuration is for. Default 1.40; at least 1.30. */
  readonly envoyVersion: MinorVersion;
  /** Default 1.30; at least 1.22. */
  readonly istioVersion: MinorVersion;
  /** Envoy Gateway. Default 1.6; at least 1.2. */
  readonly gatewayVersion: MinorVersion;
  /** Whole proxies, or pieces to be merged into ones that are there. Default "bootstrap". */
  readonly form: "bootstrap" | "fragments";
  /** Which proxies, for `envoy` and `istio`. Default both. */
  readonly roles: readonly ("sidecar" | "edge")[];
  /** Namespace of objects whose service names none, and of Headgate itself. */
  readonly namespace: string;
  /** Replicas of Headgate. Default 2. */
  readonly replicas: number;
  /** Whether Headgate may be made to serve proxies that show no certificate. Default false. */
  readonly withoutClientCertificates: boolean;
  /** Headgate's image; undefined: `headgate` of this version. */
  readonly image?: ImageName;
  /** Where the runbook is, without a fragment; `*` is an alert's name; undefined: beside them. */
  readonly runbookUrl?: string;
  /** Objects of the user's, into which `istio` and `gateway` merge theirs. Default none. */
  readonly existing: readonly ExistingObject[];
}

/** An image; its digest wins over its tag. */
export interface ImageName {
  readonly repository: string;
  readonly tag?: string;
  /** `sha256:` and 64 digits. */
  readonly digest?: string;
}

/** Something that a target cannot say, or should not. */
export interface GenerateProblem {
  /** `HG3xx`: not expressible; `HG4xx`: a lint. Rows in `generate-problems.ts`. */
  readonly id: string;
  readonly spot: PolicyLocation;
  readonly message: string;
  /** The nearest thing that can be had, or what to do. */
  readonly hint: string;
  readonly severity: Severity;
}

/** Such a problem, whose severity its row says. */
export type TargetProblem = RatedId & Pick<GenerateProblem, "spot" | "message" | "hint">;

/** Documents, with warnings; none where there is an error. */
export interface Generated {
  readonly documents: readonly Document[];
  readonly problems: readonly GenerateProblem[];
}

/** Makes the documents of one target. Pure: the same policy and options give the same bytes. */
export type Generator = (policy: GeneratedPolicy, options: GenerateOptions) => Generated;
