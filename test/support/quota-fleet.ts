import { Envoy } from "./envoy.js";
import { httpFilter, type Json } from "./envoy-config.js";
import { freePort } from "./free-port.js";
import { HeadgateProcess, type RunningHeadgate } from "./headgate-process.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { HttpClient } from "./http-client.js";
import type { Stage } from "./stage.js";
import { startUpstream, type Upstream } from "./upstream.js";

/** What the quota filter of an Envoy of the tests is about. */
export interface QuotaFilterOptions {
  readonly domain: string;
  readonly quota: string;
  /** Parts of the bucket: each the value of the header `x-<key>`. */
  readonly keys: readonly string[];
  /** What the Envoy is called. */
  readonly node: string;
  /** More fields of the settings of its buckets. */
  readonly settings?: Json;
}

const filterPackage = "type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3";
const headerInput = "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput";

function headerOf(name: string): Json {
  return { name, typed_config: { "@type": headerInput, header_name: name } };
}

/** The filter, by hand: buckets of all requests that have the first of the headers. */
export function quotaFilter(options: QuotaFilterOptions): Json {
  const { domain, quota, keys, node, settings } = options;
  const parts = keys.map((key) => [key, { custom_value: headerOf(`x-${key}`) }]);
  const bucketSettings = {
    "@type": `${filterPackage}.RateLimitQuotaBucketSettings`,
    reporting_interval: "5s",
    bucket_id_builder: {
      bucket_id_builder: { quota: { string_value: quota }, ...Object.fromEntries(parts) },
    },
    no_assignment_behavior: { fallback_rate_limit: { blanket_rule: "ALLOW_ALL" } },
    expired_assignment_behavior: {
      expired_assignment_behavior_timeout: "600s",
      fallback_rate_limit: { blanket_rule: "DENY_ALL" },
    },
    ...settings,
  };
  const predicate = {
    single_predicate: {
      input: headerOf(`x-${keys[0]}`),
      value_match: { safe_regex: { google_re2: {}, regex: ".+" } },
    },
  };
  const matcher = {
    predicate,
    on_match: { action: { name: quota, typed_config: bucketSettings } },
  };
  return httpFilter("rate_limit_quota", "RateLimitQuotaFilterConfig", {
    domain,
    rlqs_server: {
      envoy_grpc: { cluster_name: "headgate_control" },
      initial_metadata: [{ key: "x-headgate-node", value: node }],
    },
    bucket_matchers: { matcher_list: { matchers: [matcher] } },
  });
}

/** The cluster of control ports; the next one is asked where the one before it does not listen. */
export function controlCluster(ports: readonly number[]): Json {
  return {
    name: "headgate_control",
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    health_checks: [
      {
        // A port that nobody listens on refuses at once; a machine that is busy answers late.
        timeout: "5s",
        interval: "0.2s",
        no_traffic_interval: "0.2s",
        unhealthy_threshold: 1,
        healthy_threshold: 1,
        tcp_health_check: {},
      },
    ],
    common_lb_config: { update_merge_window: "0s", healthy_panic_threshold: { value: 0 } },
    load_assignment: {
      cluster_name: "headgate_control",
      endpoints: ports.map((port, priority) => {
        const address = { socket_address: { address: "127.0.0.1", port_value: port } };
        return { priority, lb_endpoints: [{ endpoint: { address } }] };
      }),
    },
  };
}

/** What stands in a `QuotaFleet`. */
export interface QuotaFleetOptions {
  readonly policy: string;
  /** Settings of each Headgate. */
  readonly headgateEnvs: readonly Readonly<Record<string, string>>[];
  /** Which Headgate has a process of its own, so that it can be killed. */
  readonly mortal?: number | undefined;
  /** By Envoy, which Headgate it asks first. */
  readonly homes: readonly number[];
  readonly filter: Omit<QuotaFilterOptions, "node">;
  /** More of the Envoys' settings. */
  readonly rateLimits?: readonly Json[];
}

/** Envoys with quotas, Headgates beside them, one upstream. */
export interface QuotaFleet {
  readonly envoys: readonly Envoy[];
  readonly headgates: readonly RunningHeadgate[];
  /** The one of them that can be killed. */
  readonly mortal: HeadgateProcess | undefined;
  readonly upstream: Upstream;
  /** Traffic of requests with these headers through one of the Envoys. */
  drive(envoy: number, headers: Readonly<Record<string, string>>): QuotaTraffic;
}

/** What an Envoy of a fleet is called. */
export function nodeName(envoy: number): string {
  return `envoy-${envoy}`;
}

/** Starts one; all of it ends with the stage. */
export async function startQuotaFleet(
  stage: Stage,
  { policy, headgateEnvs, mortal, homes, filter, rateLimits = [] }: QuotaFleetOptions,
): Promise<QuotaFleet> {
  const upstream = await startUpstream(stage);
  const ports = await Promise.all(headgateEnvs.map(() => freePort()));
  const headgates = await Promise.all(
    headgateEnvs.map((env, i) => {
      const control = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${ports[i]}` };
      const options = { policy, env: { ...env, ...control } };
      return i === mortal
        ? HeadgateProcess.start(stage, options)
        : HostedHeadgate.start(stage, options);
    }),
  );
  const envoys = await Promise.all(
    homes.map((home, i) => {
      const inOrder = ports.map((_, step) => ports[(home + step) % ports.length] ?? 0);
      return Envoy.start(stage, {
        upstreamPort: upstream.port,
        headgatePorts: headgates.map(({ grpcPort }) => grpcPort),
        rateLimits,
        domain: filter.domain,
        filtersBefore: [quotaFilter({ ...filter, node: nodeName(i) })],
        moreClusters: [controlCluster(inOrder)],
      });
    }),
  );
  return {
    envoys,
    headgates,
    mortal: headgates.find((headgate) => headgate instanceof HeadgateProcess),
    upstream,
    drive: (place, headers) => {
      const port = envoys[place]?.port;
      if (port === undefined) throw new Error(`there is no Envoy ${place}`);
      return QuotaTraffic.start(stage, { port, headers });
    },
  };
}

/** Requests at a pace of their own, whatever becomes of them. */
export class QuotaTraffic {
  readonly #http = new HttpClient();
  readonly #port: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timer: NodeJS.Timeout;
  /** When requests were sent that passed, that were refused, and that have no answer yet. */
  readonly #passedMs: number[] = [];
  readonly #refusedMs: number[] = [];
  readonly #open = new Set<{ readonly sentMs: number }>();
  #perSecond = 0;
  #due = 0;
  #atMs = performance.now();
  /** Why requests had no answer. */
  readonly failures: string[] = [];

  private constructor(port: number, headers: Readonly<Record<string, string>>) {
    this.#port = port;
    this.#headers = headers;
    this.#timer = setInterval(() => this.#sendDue(), 5);
  }

  /** Begins without any; `pace` says how many. */
  static start(
    stage: Stage,
    {
      port,
      headers,
    }: { readonly port: number; readonly headers: Readonly<Record<string, string>> },
  ): QuotaTraffic {
    const traffic = new QuotaTraffic(port, headers);
    stage.atEnd(() => traffic.stop());
    return traffic;
  }

  /** So many requests a second from now on. */
  pace(perSecond: number): void {
    this.#sendDue();
    this.#perSecond = perSecond;
  }

  /** One request, at once; resolves when it is answered. */
  async sendOne(): Promise<void> {
    await this.#send();
  }

  /** How many of those that were sent in a time have passed. */
  passed(fromMs: number, untilMs: number): number {
    return countWithin(this.#passedMs, fromMs, untilMs);
  }

  /** How many of those that were sent in a time were refused. */
  refused(fromMs: number, untilMs: number): number {
    return countWithin(this.#refusedMs, fromMs, untilMs);
  }

  /** All that was sent before has its answer. */
  get answeredMs(): number {
    const [oldest] = this.#open;
    return oldest?.sentMs ?? performance.now();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#http.close();
  }

  #sendDue(): void {
    const nowMs = performance.now();
    this.#due += (this.#perSecond * (nowMs - this.#atMs)) / 1_000;
    this.#atMs = nowMs;
    for (; this.#due >= 1; this.#due -= 1) void this.#send();
  }

  async #send(): Promise<void> {
    const sentMs = performance.now();
    const request = { sentMs };
    this.#open.add(request);
    try {
      const { status } = await this.#http.send({ port: this.#port, headers: this.#headers });
      (status === 200 ? this.#passedMs : this.#refusedMs).push(sentMs);
    } catch (thrown) {
      this.failures.push(String(thrown));
    }
    this.#open.delete(request);
  }
}

function countWithin(all: readonly number[], fromMs: number, untilMs: number): number {
  return all.filter((ms) => ms >= fromMs && ms < untilMs).length;
}
