import { formatMinorVersion, isAtLeastVersion } from "../base/generate-options.js";
import type { MinorVersion } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { envoyGatewayVersion, gatewayGroup } from "./gateway-names.js";

/** Envoy Gateway 1.2 has Envoy 1.32, 1.3 has 1.33, and so on. Source: its release notes. */
export const envoyMinorsAhead = 30;

/** The field that shows whether a version has a feature. */
interface GatewayField {
  /** The first minor version of 1 that has it. */
  readonly since: number;
  readonly apiVersion: string;
  readonly kind: string;
  /** Names below `spec`, through lists. `=` precedes a value of an enum. */
  readonly field: string;
}

const trafficField = (since: number, field: string): GatewayField => {
  return { since, apiVersion: envoyGatewayVersion, kind: "BackendTrafficPolicy", field };
};

const rules = "rateLimit.global.rules";

/**
 * Features that some supported versions of Envoy Gateway lack. A test checks each row against the
 * definitions of all supported versions.
 *
 * Source: CustomResourceDefinitions of Envoy Gateway's releases, as check/schemas has them.
 */
export const gatewayFeatures = {
  /** Costs of requests on arrival, or from metadata once their responses are complete. */
  costs: trafficField(3, `${rules}.cost.response.from=Metadata`),
  months: trafficField(5, `${rules}.limit.unit=Month`),
  resetBeforeRequest: trafficField(5, "retry.retryOn.triggers=reset-before-request"),
  backendTlsV1: {
    since: 6,
    apiVersion: `${gatewayGroup}/v1`,
    kind: "BackendTLSPolicy",
    field: "validation",
  },
  queryParams: trafficField(7, `${rules}.clientSelectors.queryParams`),
  shadowMode: trafficField(7, `${rules}.shadowMode`),
  retryBudget: trafficField(8, "circuitBreaker.retryBudget"),
  streamIdleTimeout: trafficField(8, "timeout.http.streamIdleTimeout"),
  weeks: trafficField(9, `${rules}.limit.unit=Week`),
} as const satisfies Readonly<Record<string, GatewayField>>;

type GatewayFeature = keyof typeof gatewayFeatures;

/** Reports whether the Envoy Gateway that is generated for has a feature. */
export function hasGatewayFeature(
  { options }: Pick<EnvoyContext, "options">,
  feature: GatewayFeature,
): boolean {
  return isAtLeastVersion(options.gatewayVersion, since(feature));
}

/** Arguments of `reportOldGateway`. */
export interface OldGateway {
  readonly service: string;
  readonly path: readonly string[];
  readonly feature: GatewayFeature;
  /** In words, as the object of "does not support". */
  readonly what: string;
  /** What to do if the version cannot change. */
  readonly instead: string;
}

/** Reports a feature that this version of Envoy Gateway does not have yet. */
export function reportOldGateway(
  { report, options }: EnvoyContext,
  { service, path, feature, what, instead }: OldGateway,
): void {
  report({
    id: "HG350",
    spot: { service, path },
    message:
      `Envoy Gateway ${formatMinorVersion(options.gatewayVersion)} does not support ` + `${what}`,
    hint: `--gateway-version ${formatMinorVersion(since(feature))}, or ${instead}`,
  });
}

function since(feature: GatewayFeature): MinorVersion {
  return { major: 1, minor: gatewayFeatures[feature].since };
}
