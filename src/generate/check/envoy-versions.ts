import type { CheckProblem } from "../base/check-problem.js";
import { formatMinorVersion, isAtLeastVersion } from "../base/generate-options.js";
import type { MinorVersion } from "../base/generator.js";
import { type EnvoyMessage, visitMessages } from "./envoy-message.js";

const http = "envoy.extensions.filters.http";
const gradient = `${http}.adaptive_concurrency.v3.GradientControllerConfig`;
const monitors = "envoy.extensions.resource_monitors";

/**
 * What of the API that we generate is younger than the oldest Envoy that we generate for: the first
 * minor version of 1 that surely has it. A name with `#` is a field, others are messages.
 *
 * Source: Envoy's API by release, as the tags v0.12.0 (early 2024), v0.13.1, envoy/v1.32.4 and
 * envoy/v1.35.0 to envoy/v1.40.0 of go-control-plane have it. Where a release
 * between two of them may have something already, the later one stands.
 */
const sinceMinor: Readonly<Record<string, number>> = {
  // In v0.13.1 and not in v0.12.0; named in the notes of 1.31.0, and not in those of 1.30.0.
  [`${http}.ext_proc.v3.ExternalProcessor#route_cache_action`]: 31,
  // In envoy/v1.32.4, which is younger than 1.32.0, and not in v0.13.1.
  "envoy.config.route.v3.RateLimit#apply_on_stream_done": 33,
  "envoy.config.route.v3.RateLimit#hits_addend": 33,
  "envoy.config.route.v3.RateLimit.Action#query_parameters": 33,
  [`${monitors}.cpu_utilization.v3.CpuUtilizationConfig#mode`]: 33,
  // In envoy/v1.35.0, and not in envoy/v1.32.4.
  [`${gradient}.MinimumRTTCalculationParams#fixed_value`]: 35,
  [`${http}.ratelimit.v3.RateLimit#filter_enabled`]: 35,
  [`${http}.ratelimit.v3.RateLimit#filter_enforced`]: 35,
  [`${monitors}.cgroup_memory.v3.CgroupMemoryConfig`]: 35,
  // In envoy/v1.36.0, and not in envoy/v1.35.0.
  [`${http}.ext_proc.v3.ExternalProcessor#status_on_error`]: 36,
  // In envoy/v1.38.0, and not in envoy/v1.37.0.
  "envoy.config.route.v3.RateLimit.HitsAddend#is_negative_hits": 38,
  // In envoy/v1.40.0, and not in envoy/v1.39.0.
  [`${gradient}.ConcurrencyLimitCalculationParams#min_concurrency_limit`]: 40,
  [`${http}.local_ratelimit.v3.LocalRateLimit#enable_retry_after_header`]: 40,
  [`${http}.ratelimit.v3.RateLimit#enable_retry_after_header`]: 40,
};

/** Messages that are young, or have fields that are. */
const youngMessages: ReadonlySet<string> = new Set(
  Object.keys(sinceMinor).map((name) => name.replace(/#.*/, "")),
);

/** What is in a message, and not yet in that version of Envoy. */
export function checkVersion(root: EnvoyMessage, version: MinorVersion): readonly CheckProblem[] {
  const problems: CheckProblem[] = [];
  visitMessages(root, ({ desc, path, fields }) => {
    if (!youngMessages.has(desc.typeName)) return;
    const names = [
      desc.typeName,
      ...Array.from(fields.keys(), (name) => `${desc.typeName}#${name}`),
    ];
    for (const name of names) {
      const minor = Object.hasOwn(sinceMinor, name) ? sinceMinor[name] : undefined;
      if (minor === undefined || isAtLeastVersion(version, { major: 1, minor })) continue;
      problems.push({
        id: "HG454",
        path,
        message: `${name.replace("#", ".")} is not in Envoy ${formatMinorVersion(version)}`,
        hint: `generate for 1.${minor} or later`,
        severity: "error",
      });
    }
  });
  return problems;
}
