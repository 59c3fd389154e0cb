import { formatMinorVersion, isAtLeastVersion } from "../base/generate-options.js";
import type { MinorVersion } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { envoyGatewayVersion, gatewayGroup } from "./gateway-names.js";

/** Envoy Gateway 1.2 has Envoy 1.32, and each one since the next. Source: its release notes. */
export const envoyMinorsAhead = 30;

/** Where it can be seen that a version has something. */
interface GatewayField {
  /** The first minor version of 1 that has it. */
  readonly since: number;
  readonly apiVersion: string;
  readonly kind: string;
  /** Names from `spec` down, through lists; `=` is before a word of an enumeration. */
  readonly field: string;
}

const trafficField = (since: number, field: string): GatewayField => {
  return { since, apiVersion: envoyGatewayVersion, kind: "BackendTrafficPolicy", field };
};

const rules = "rateLimit.global.rules";

/**
 * What not every Envoy Gateway has. A test holds each row against the definitions of every version
 * that is generated for.
 *
 * Source: CustomResourceDefinitions of Envoy Gateway's releases, as check/schemas has them.
 */
export const gatewayFeatures = {
  /** What requests cost, told as they come, or of metadata once their responses are through. */
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
    message:
      `Envoy Gateway ${formatMinorVersion(options.gatewayVersion)} does not support ` + `${what}`,
    hint: `--gateway-version ${formatMinorVersion(since(feature))}, or ${instead}`,
  });
}

function since(feature: GatewayFeature): MinorVersion {
  return { major: 1, minor: gatewayFeatures[feature].since };
}
