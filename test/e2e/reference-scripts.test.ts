import { beforeAll, describe, expect, it } from "vitest";
import { startDropIn, statistics } from "../support/drop-in.js";
import { Envoy } from "../support/envoy.js";
import { constant, fromHeader, httpFilter, type Json } from "../support/envoy-config.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { startUpstream, type Upstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

/**
 * What the integration scripts of envoyproxy/ratelimit do, on a file of its language. Limits are by
 * the year where theirs are by the minute, so that nothing comes back while a test runs.
 */
const policy = `domain: edge
descriptors:
  - key: account
    rate_limit: {unit: year, requests_per_unit: 4, replaces: [{name: pair}, {name: link}]}
  - key: from
    value: proxy
    descriptors:
      - key: to
        value: pair
        rate_limit: {unit: year, requests_per_unit: 2, replaces: [{name: pair}]}
      - {key: to, value: backend, rate_limit: {unit: year, requests_per_unit: 1}}
      - key: to
        value: open
        rate_limit: {unit: year, requests_per_unit: 2, replaces: [{name: banned}]}
      - {key: to, value: link, rate_limit: {unit: year, requests_per_unit: 2, name: link}}
  - key: user
    rate_limit: {unit: year, requests_per_unit: 2}
    descriptors:
      - {key: plan, rate_limit: {unit: year, requests_per_unit: 3}}
      - {key: plan, value: pair, rate_limit: {unit: year, requests_per_unit: 1, name: pair}}
      - {key: plan, value: banned, rate_limit: {unit: year, requests_per_unit: 0, name: banned}}
      - key: trust
        value: shady
        shadow_mode: true
        rate_limit: {unit: year, requests_per_unit: 3}
      - {key: trust, value: plain, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: open, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 2}}
${["quota", "tokens", "many"].map(services).join("\n")}
`;

/** Two services whose quotas are asked for together, apart from those of other scripts. */
function services(key: string): string {
  const service = (name: string, count: number): string =>
    `  - {key: ${key}, value: ${name}, quota_mode: true, metadata: {chosen: {name: ${name}}}, ` +
    `rate_limit: {unit: year, requests_per_unit: ${count}}}`;
  return `${service("service_1", 1)}\n${service("service_2", 2)}`;
}

const perRoute = "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";

function route(prefix: string, rateLimits: readonly Json[], cluster = "upstream"): Json {
  return {
    match: { prefix },
    route: { cluster },
    typed_per_filter_config: {
      "envoy.filters.http.ratelimit": {
        "@type": `type.googleapis.com/${perRoute}`,
        rate_limits: rateLimits,
      },
    },
  };
}

const free: Json = { hits_addend: { number: 0 } };
const whenDone: Json = { hits_addend: { number: 1 }, apply_on_stream_done: true };
const on = (entries: readonly Json[], fields: Json = {}): Json => ({ actions: entries, ...fields });
const header = (key: string): Json => fromHeader(key, key);
const pairOfHeaders = on([header("user"), header("plan")]);
const linkOfHeaders = on([header("from"), header("to")]);

/** The locality that served the request says whose cost it is. */
const servedBy: Json = {
  metadata: {
    descriptor_key: "many",
    source: "CLUSTER_LOCALITY_ENTRY",
    metadata_key: { key: "envoy.cluster.locality", path: [{ key: "name" }] },
  },
};

const routes: readonly Json[] = [
  route("/two", [pairOfHeaders, on([header("user"), header("trust")])]),
  route("/four", [pairOfHeaders, linkOfHeaders]),
  route("/five", [pairOfHeaders, linkOfHeaders, on([header("account")])]),
  route("/open", [on([header("open")])]),
  route(
    "/quota",
    ["service_1", "service_2"].map((name) => on([constant("quota", name)])),
  ),
  route("/tokens", [
    on([constant("tokens", "service_2")], free),
    on([constant("tokens", "service_2")], whenDone),
  ]),
  route(
    "/many",
    [
      on([constant("many", "service_1")], free),
      on([constant("many", "service_2")], free),
      on([servedBy], whenDone),
    ],
    "services",
  ),
];

/** Sends a request to the service that the answer's metadata names. */
const choosing: readonly Json[] = [
  httpFilter("header_mutation", "HeaderMutation", {
    mutations: {
      request_mutations: [
        {
          append: {
            header: {
              key: "x-chosen",
              value: "%DYNAMIC_METADATA(envoy.filters.http.ratelimit:metadata:chosen:name)%",
            },
            append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
          },
        },
      ],
    },
  }),
  httpFilter("header_to_metadata", "Config", {
    request_rules: [
      {
        header: "x-chosen",
        on_header_present: { metadata_namespace: "envoy.lb", key: "service", type: "STRING" },
      },
    ],
  }),
];

function servicesCluster(ports: readonly number[]): Json {
  const endpoints = ports.map((port, i) => {
    const name = `service_${i + 1}`;
    const address = { socket_address: { address: "127.0.0.1", port_value: port } };
    return {
      locality: { region: `region_${i + 1}` },
      metadata: { filter_metadata: { "envoy.cluster.locality": { name } } },
      lb_endpoints: [
        {
          endpoint: { address },
          metadata: { filter_metadata: { "envoy.lb": { service: name } } },
        },
      ],
    };
  });
  return {
    name: "services",
    type: "STATIC",
    connect_timeout: "1s",
    lb_subset_config: {
      fallback_policy: "ANY_ENDPOINT",
      subset_selectors: [{ keys: ["service"] }],
    },
    load_assignment: { cluster_name: "services", endpoints },
  };
}

const stage = useStage("file");
let headgate: HostedHeadgate;
let envoy: Envoy;
let http: HttpClient;
let served: readonly Upstream[];

beforeAll(async () => {
  const env = { RESPONSE_DYNAMIC_METADATA: "true", DEBUG_PORT: "0" };
  const started = await startDropIn(stage, { policy, env });
  ({ headgate } = started);
  served = await Promise.all([startUpstream(stage), startUpstream(stage)]);
  const ports = served.map(({ port }) => port);
  envoy = await Envoy.start(stage, {
    upstreamPort: ports[0] ?? 0,
    headgatePorts: [headgate.grpcPort],
    rateLimits: [],
    routesBefore: routes,
    filtersAfter: choosing,
    moreClusters: [servicesCluster(ports)],
    filter: {
      rate_limited_as_resource_exhausted: true,
      enable_x_ratelimit_headers: "DRAFT_VERSION_03",
    },
  });
  http = new HttpClient();
  stage.atEnd(() => http.close());
});

type Values = Readonly<Record<string, string>>;

async function statuses(times: number, path: string, headers: Values = {}): Promise<string> {
  const found: number[] = [];
  for (let count = 0; count < times; count += 1) {
    found.push((await http.send({ port: envoy.port, path, headers })).status);
  }
  return found.join(" ");
}

/** Sends one request, and waits until its cost has arrived behind it. */
async function settled(path: string, cost: { readonly hits: number }): Promise<number> {
  const before = await hitCount();
  const { status } = await http.send({ port: envoy.port, path });
  await waitFor("the cost has arrived", async () => (await hitCount()) === before + cost.hits);
  return status;
}

async function hitCount(): Promise<number> {
  let count = 0;
  for (const [name, value] of await statistics(headgate)) {
    if (name.endsWith(".total_hits")) count += value;
  }
  return count;
}

describe("the integration scripts of envoyproxy/ratelimit, against Headgate behind Envoy", () => {
  it("simple-get: a request within its limits passes", async () => {
    expect(await statuses(1, "/two", { user: "one", trust: "shady" })).toBe("200");
  });

  it("trigger-ratelimit: what is above the limit is refused", async () => {
    const asked = { user: "many", trust: "plain" };
    expect(await statuses(5, "/two", asked)).toBe("200 200 200 429 429");
  });

  it("trigger-shadow-mode-key: a shadow refuses nobody, and has nothing left", async () => {
    const shady = { user: "many", trust: "shady" };
    expect(await statuses(5, "/two", shady)).toBe("200 200 200 200 200");
    const { status, headers } = await http.send({ port: envoy.port, path: "/two", headers: shady });
    expect([status, headers["x-ratelimit-remaining"]]).toEqual([200, "0"]);
  });

  it("value-included-in-stats-key: the value is in the statistic's name", async () => {
    expect(await statuses(3, "/open", { open: "value" })).toBe("200 200 429");
    const all = await statistics(headgate);
    expect(all.get("ratelimit.service.rate_limit.edge.open_value.over_limit")).toBe(1);
  });

  it("replaces: a rule stands in for those it names, and leaves them as they were", async () => {
    const banned = { user: "a", plan: "banned" };
    expect(await statuses(1, "/two", banned)).toBe("429");
    expect(await statuses(1, "/four", { ...banned, from: "proxy", to: "backend" })).toBe("429");
    const open = { ...banned, from: "proxy", to: "open" };
    expect(await statuses(3, "/four", open)).toBe("200 200 429");

    const pair = { user: "b", plan: "pair", from: "proxy" };
    expect(await statuses(3, "/four", { ...pair, to: "pair" })).toBe("200 200 429");
    expect(await statuses(2, "/four", { ...pair, to: "another" })).toBe("200 429");
    expect(await statuses(1, "/four", { ...pair, to: "pair" })).toBe("429");

    const all = { ...pair, to: "link", account: "gold" };
    expect(await statuses(5, "/five", all)).toBe("200 200 200 200 429");
    expect(await statuses(2, "/two", { user: "c", plan: "pair" })).toBe("200 429");
    const link = { user: "d", plan: "other", from: "proxy", to: "link" };
    expect(await statuses(3, "/four", link)).toBe("200 200 429");
    expect(await statuses(1, "/five", all)).toBe("429");
  });

  it("quota: a request is refused when all quotas are used up", async () => {
    expect(await statuses(3, "/quota")).toBe("200 200 429");
  });

  it("token-quota: costs after the response are charged, until the quota is in debt", async () => {
    const found: number[] = [];
    for (let count = 0; count < 4; count += 1) found.push(await settled("/tokens", { hits: 1 }));
    expect(found).toEqual([200, 200, 200, 429]);
  });

  it("multiservice-tokenquota: requests go where there is room, until there is none", async () => {
    const before = served.map(({ requestCount }) => requestCount);
    const found: number[] = [];
    for (let count = 0; count < 5; count += 1) found.push(await settled("/many", { hits: 1 }));
    expect(found).toEqual([200, 200, 200, 200, 200]);
    expect(served.map(({ requestCount }, i) => requestCount - (before[i] ?? 0))).toEqual([2, 3]);
    expect(await statuses(1, "/many")).toBe("429");
  });
});
