import { formatMinorVersion, isAtLeastVersion } from "../../base/generate-options.js";
import type { EnvoyContext } from "./context.js";

/**
 * Features that some supported Envoys lack, with the first minor version of 1 that has them. If a
 * release between two that were examined may have a feature already, the later one is listed.
 *
 * Source: Envoy's API by release (go-control-plane's tags) and its changelogs.
 */
const envoyFeatures = {
  /** `route_cache_action` of ext_proc. */
  routeCacheAction: 31,
  /** `observability_mode` of ext_proc. */
  observedBodies: 31,
  /** Behavior of the quota filter before the first assignment and after the last one. */
  quotaFallbacks: 33,
  /** Resource monitor of the CPU of the host or the container. */
  cpuMonitor: 33,
  /** `rate_limits` under typed_per_filter_config of the rate-limit filter. */
  rateLimitsPerRoute: 33,
  /** `hits_addend` of one descriptor. */
  hitsPerDescriptor: 33,
  /** Descriptors that are reported after the response is complete. */
  hitsOnStreamDone: 33,
  /** The action `query_parameters`. */
  queryParameters: 33,
  /** ext_proc streams are closed instead of reset. */
  gracefulExtProc: 34,
  /** Named runtime keys of the rate-limit filter. */
  rateLimitRuntimeKeys: 35,
  /** Resource monitor of the memory of a control group. */
  cgroupMonitor: 35,
  /** `fixed_value` of the gradient controller. */
  fixedMinRtt: 35,
  /** `status_on_error` of ext_proc. */
  extProcErrorStatus: 36,
  /** `request_body_buffer_limit` of virtual hosts. */
  requestBodyBufferLimit: 36,
  /** Hits that are refunded. */
  refunds: 38,
  /** `Retry-After` of both rate-limit filters. */
  retryAfterHeader: 40,
  /** Client certificates over QUIC. */
  quicClientCertificates: 40,
  /** A minimum of the gradient controller's limit that is separate from its measurement. */
  gradientFloor: 40,
} as const satisfies Readonly<Record<string, number>>;

/** One of `envoyFeatures`. */
export type EnvoyFeature = keyof typeof envoyFeatures;

/** Reports whether the Envoy that is generated for has a feature. */
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
  /** In words, as the object of "does not support". */
  readonly what: string;
  /** What to do if the version of Envoy cannot change. */
  readonly instead: string;
}

/** Reports a feature that the Envoy that is generated for does not have yet. */
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
