import { formatMinorVersion, isAtLeastVersion } from "../../base/generate-options.js";
import type { EnvoyContext } from "./context.js";

/**
 * What not every Envoy has that configuration is made for, by the first minor version of 1 that has
 * it. Where a release between two that were looked at may have it already, the later one stands.
 *
 * Source: Envoy's API by release (go-control-plane's tags) and its changelogs.
 */
const envoyFeatures = {
  /** `route_cache_action` of ext_proc. */
  routeCacheAction: 31,
  /** `observability_mode` of ext_proc. */
  observedBodies: 31,
  /** What the quota filter does before its first assignment, and after the last one. */
  quotaFallbacks: 33,
  /** Resource monitor of the CPU, of the host or of the container. */
  cpuMonitor: 33,
  /** `rate_limits` under typed_per_filter_config of the rate-limit filter. */
  rateLimitsPerRoute: 33,
  /** `hits_addend` of one descriptor. */
  hitsPerDescriptor: 33,
  /** Descriptors that are told of once the response is through. */
  hitsOnStreamDone: 33,
  /** The action `query_parameters`. */
  queryParameters: 33,
  /** Streams of ext_proc end instead of being reset. */
  gracefulExtProc: 34,
  /** Runtime keys of the rate-limit filter by name. */
  rateLimitRuntimeKeys: 35,
  /** Resource monitor of a control group's memory. */
  cgroupMonitor: 35,
  /** `fixed_value` of the gradient controller. */
  fixedMinRtt: 35,
  /** `status_on_error` of ext_proc. */
  extProcErrorStatus: 36,
  /** `request_body_buffer_limit` of virtual hosts. */
  requestBodyBufferLimit: 36,
  /** Hits that are given back. */
  refunds: 38,
  /** Retry-After of both rate-limit filters. */
  retryAfterHeader: 40,
  /** Certificates of callers over QUIC. */
  quicClientCertificates: 40,
  /** A floor of the gradient controller's limit that is no part of its measurement. */
  gradientFloor: 40,
} as const satisfies Readonly<Record<string, number>>;

/** One of `envoyFeatures`. */
export type EnvoyFeature = keyof typeof envoyFeatures;

/** Whether the Envoy that is generated for has something. */
export function hasFeature(
  { options }: Pick<EnvoyContext, "options">,
  feature: EnvoyFeature,
): boolean {
  return isAtLeastVersion(options.envoyVersion, { major: 1, minor: envoyFeatures[feature] });
}

interface OldEnvoy {
  readonly service: string | undefined;
  readonly path: readonly string[];
  readonly feature: EnvoyFeature;
  /** In words, as the subject of a sentence. */
  readonly what: string;
  /** What to do where the Envoy has to stay. */
  readonly instead: string;
}

/** Reports what the Envoy that is generated for does not have yet. */
export function reportOld(
  { report, options }: Pick<EnvoyContext, "report" | "options">,
  { service, path, feature, what, instead }: OldEnvoy,
): void {
  const version = formatMinorVersion(options.envoyVersion);
  report({
    id: "HG321",
    spot: { service, path },
    message:
      `Envoy ${version} does not support ${what}, which needs ` +
      `1.${envoyFeatures[feature]} or later`,
    hint: `--envoy-version 1.${envoyFeatures[feature]}, or ${instead}`,
  });
}
