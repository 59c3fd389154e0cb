import {
  createMetrics,
  type Labels,
  type ReadMetric,
  type RenderedMetrics,
} from "../base/metrics.js";
import type { StatTag } from "../options/stats-names.js";
import { latencyHistogram } from "./decision-metrics.js";
import {
  callCount,
  countedMethod,
  failedCounts,
  hitStats,
  namedHits,
  type StatsSources,
} from "./stats.js";

/** Options for the series of envoyproxy/ratelimit. */
export interface ReferenceMetricsOptions {
  /** Whether response times are in milliseconds, although their name says seconds. */
  readonly isMilliseconds: boolean;
  /** Labels of every series. */
  readonly tags: readonly StatTag[];
}

/**
 * Creates the series of envoyproxy/ratelimit, with the names of its own exporter's default mapping.
 * Those of `own` follow, so that one address has everything.
 *
 * Source: its `src/stats/prom/default_mapper.yaml`; the buckets are Headgate's, which are finer.
 */
export function createReferenceMetrics(
  sources: StatsSources,
  own: RenderedMetrics,
  { isMilliseconds, tags }: ReferenceMetricsOptions,
): RenderedMetrics {
  const reference = createMetrics(
    Object.fromEntries(tags.map(({ name, value }) => [labelName(name), value])),
  );
  reference.add({
    counters: [...hitCounters(sources), ...serviceCounters(sources)],
    histograms: [
      latencyHistogram(sources.counters, {
        name: "ratelimit_service_response_time_seconds",
        labels: { grpc_method: countedMethod },
        unitMs: isMilliseconds ? 1 : 1_000,
      }),
    ],
  });
  return {
    contentType: own.contentType,
    render: async () => `${await reference.render()}\n${await own.render()}`,
  };
}

/** Converts a tag's name to a label's. Source: Prometheus, "Data model". */
function labelName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^(?=[0-9])/, "_");
}

const hitHelp: Readonly<Record<(typeof hitStats)[number]["name"], string>> = {
  total_hits: "Hits requested.",
  over_limit: "Hits over a limit.",
  near_limit: "Hits within a limit, but above NEAR_LIMIT_RATIO of it.",
  within_limit: "Hits within a limit.",
  shadow_mode: "Hits over a limit in shadow mode.",
  over_limit_with_local_cache: "Hits over a limit, denied without a store call.",
  total_negative_hits: "Hits refunded.",
};

function hitCounters(sources: StatsSources): readonly ReadMetric[] {
  return hitStats.map(({ name, field }) => ({
    name: `ratelimit_service_rate_limit_${name}`,
    help: hitHelp[name],
    labelNames: ["domain", "key1", "key2"],
    read: (add) => {
      for (const { domain, steps, hits } of namedHits(sources)) {
        if (hits[field] > 0) add(hits[field], hitLabels(domain, steps));
      }
    },
  }));
}

/** Labels two levels, as in the mapping of envoyproxy/ratelimit: deeper ones are summed. */
function hitLabels(domain: string, [key1 = "", key2]: readonly string[]): Labels {
  return key2 === undefined ? { domain, key1 } : { domain, key1, key2 };
}

function serviceCounters(sources: StatsSources): readonly ReadMetric[] {
  const { counters, policies } = sources;
  return [
    {
      name: "ratelimit_service_should_rate_limit_error",
      help: "Failed calls: because of the store, or for any other reason.",
      labelNames: ["err_type"],
      read: (add) => {
        const { storeErrorCount, serviceErrorCount } = failedCounts(sources);
        add(storeErrorCount, { err_type: "redis_error" });
        add(serviceErrorCount, { err_type: "service_error" });
      },
    },
    {
      name: "ratelimit_service_total_requests",
      help: "Calls, including failed ones.",
      labelNames: ["grpc_method"],
      read: (add) => add(callCount(sources), { grpc_method: countedMethod }),
    },
    {
      name: "ratelimit_service_config_load_success",
      help: "Policies loaded.",
      read: (add) => add(policies.status.loadedCount),
    },
    {
      name: "ratelimit_service_config_load_error",
      help: "Policies refused.",
      read: (add) => add(policies.status.refusedCount),
    },
    {
      name: "ratelimit_service_global_shadow_mode",
      help: "Requests that passed only because of SHADOW_MODE.",
      read: (add) => add(counters.shadowedCount),
    },
    {
      name: "ratelimit_service_rate_limit_domain_not_found",
      help: "Requests for a domain that the policy does not have.",
      read: (add) => add(counters.unknownDomainCount),
    },
  ];
}
