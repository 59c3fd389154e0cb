import type { EnvoyContext } from "../envoy/context.js";
import { formatMinorVersion, isAtLeastVersion } from "../generate-options.js";
import type { MinorVersion } from "../generator.js";

/** Envoy Gateway 1.2 has Envoy 1.32, and each one since the next. Source: its release notes. */
export const envoyMinorsAhead = 30;

/**
 * What not every Envoy Gateway has, by the first minor version of 1 that has it. Where a release
 * between two that were looked at may have it already, the later one stands.
 *
 * Source: gateway.envoyproxy.io, its CustomResourceDefinitions by release.
 */
const gatewayFeatures = {
  /** Units of a month and a year; what a request costs; attributes of ext_proc. */
  costs: 5,
  /** Gateway API 1.4, and so BackendTLSPolicy v1. */
  backendTlsV1: 6,
  /** Conditions on parameters of the query. */
  queryParams: 7,
  /** `retryBudget`; a time for streams on which nothing moves; a week. */
  retryBudget: 8,
  streamIdleTimeout: 8,
  weeks: 8,
} as const satisfies Readonly<Record<string, number>>;

/** One of `gatewayFeatures`. */
export type GatewayFeature = keyof typeof gatewayFeatures;

/** Whether the Envoy Gateway that is generated for has something. */
export function hasGatewayFeature(
  { options }: Pick<EnvoyContext, "options">,
  feature: GatewayFeature,
): boolean {
  return isAtLeastVersion(options.gatewayVersion, since(feature));
}

/** What `reportOldGateway` takes. */
export interface OldGateway {
  readonly service: string;
  readonly path: readonly string[];
  readonly feature: GatewayFeature;
  /** In words, as the object of "has no". */
  readonly what: string;
  /** What to do where the version has to stay. */
  readonly instead: string;
}

/** Reports what this Envoy Gateway does not have yet. */
export function reportOldGateway(
  { report, options }: EnvoyContext,
  { service, path, feature, what, instead }: OldGateway,
): void {
  report({
    id: "HG350",
    spot: { service, path },
    message: `Envoy Gateway ${formatMinorVersion(options.gatewayVersion)} has no ${what}`,
    hint: `--gateway-version ${formatMinorVersion(since(feature))}, or ${instead}`,
    severity: "error",
  });
}

function since(feature: GatewayFeature): MinorVersion {
  return { major: 1, minor: gatewayFeatures[feature] };
}
