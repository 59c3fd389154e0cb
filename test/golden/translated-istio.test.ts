import { describe, expect, it } from "vitest";
import { casePolicy, policyCases } from "../support/generated.js";
import { meshGaps } from "../support/mesh-gaps.js";
import { meshViolations } from "../support/mesh-invariants.js";
import {
  meshBootstrapOf,
  meshCases,
  recordedMesh,
  wholeMeshBootstrap,
} from "../support/translated-istio.js";
import { ownFindings } from "../support/translated-lints.js";

const cases = [...meshCases(), ...policyCases().filter(({ target }) => target === "istio")];
const proxies = cases.flatMap((given) => {
  const { services } = casePolicy(given);
  return Object.entries(recordedMesh(given).proxies).map(([own, proxy]) => {
    return { name: given.name, own, services, proxy, given };
  });
});

describe("what istiod makes of generated patches", () => {
  it.each(proxies)("$name, $own: holds what every policy is owed", ({ own, services, proxy }) => {
    expect(meshViolations(proxy, { services, own })).toEqual([]);
  });

  it.each(cases)("$name: has all services, and asks for all limits", (given) => {
    expect(meshGaps(recordedMesh(given).proxies, casePolicy(given))).toEqual([]);
  });

  it.each(proxies)("$name, $own: has nothing that `check` finds fault with", (row) => {
    expect(ownFindings(wholeMeshBootstrap(row.proxy), row.given)).toEqual([]);
  });
});

/** The user's subsets and canary, and the policy's outlier detection, times and retries. */
describe("what istiod makes of objects that were merged", () => {
  const given = meshCases().find(({ name }) => name === "istio/merged");
  const gateway = given && recordedMesh(given).proxies["gateway"];

  it.each([
    ["", { consecutive_5xx: 7, interval: "5s", base_ejection_time: "30s" }],
    ["v1", { consecutive_5xx: 7, interval: "5s", base_ejection_time: "30s" }],
    ["v2", { consecutive_5xx: 7, interval: "10s", base_ejection_time: "60s" }],
  ])("has subset %j with both", (subset, outliers) => {
    const host = "orders.shop.svc.cluster.local";
    const cluster = gateway?.clusters.find(
      ({ name }) => name === `outbound|8080|${subset}|${host}`,
    );
    expect(cluster).toMatchObject({
      outlier_detection: outliers,
      circuit_breakers: { thresholds: [{ max_connections: 50, max_pending_requests: 100 }] },
    });
  });

  it("has the canary's weights and rewrite, with times and retries", () => {
    const routes = gateway?.routes.find(({ name }) => name === "http.80");
    const weights = [{ weight: 90 }, { weight: 10 }];
    const retry_policy = { num_retries: 2, retry_on: "connect-failure" };
    expect(routes).toMatchObject({
      virtual_hosts: [
        {
          domains: expect.arrayContaining(["orders.example.com"]),
          routes: [
            { route: { timeout: "60s", retry_policy } },
            {
              route: {
                timeout: "5s",
                retry_policy,
                prefix_rewrite: "/v2/",
                weighted_clusters: { clusters: weights },
              },
            },
          ],
        },
      ],
    });
  });
});

describe("what istiod makes of a service's protocol", () => {
  const given = meshCases().find(({ name }) => name === "istio/options");

  it.each(["web", "gateway"])("upgrades, or does not, whatever the port is called: %s", (proxy) => {
    const clusters = given && recordedMesh(given).proxies[proxy]?.clusters;
    const optionsOf = (service: string): unknown =>
      clusters?.find(({ name }) => name === `outbound|8080||${service}.shop.svc.cluster.local`)?.[
        "typed_extension_protocol_options"
      ];
    const explicit = (config: object): object => ({
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": { explicit_http_config: config },
    });
    expect(optionsOf("orders")).toMatchObject(explicit({ http2_protocol_options: {} }));
    // Without options Envoy speaks HTTP/1.1.
    expect(optionsOf("slow")).toBeUndefined();
  });
});

describe("what istiod makes of limits of connections", () => {
  it("puts them before the filter that takes connections on, in their order", () => {
    const given = meshCases().find(({ name }) => name === "istio/tcp");
    const { listeners = [] } = (given && recordedMesh(given).proxies["gateway"]) ?? {};
    const filters = (name: string) => ({ name: `envoy.filters.network.${name}` });
    expect(listeners.find(({ name }) => name === "0.0.0.0_6379")).toMatchObject({
      filter_chains: [
        {
          filters: [
            filters("connection_limit"),
            filters("local_ratelimit"),
            {
              ...filters("ratelimit"),
              typed_config: {
                domain: "shop",
                rate_limit_service: {
                  grpc_service: {
                    envoy_grpc: {
                      cluster_name: "outbound|8081||headgate.headgate.svc.cluster.local",
                    },
                  },
                },
              },
            },
            filters("tcp_proxy"),
          ],
        },
      ],
    });
  });
});

/** What a mesh could lose without a word: each has to be found where something else is there. */
describe("meshGaps()", () => {
  it.each([
    // A VirtualService has another host, or a listener has routes of its own.
    {
      found: "gateway, http.80: orders.example.com is nowhere",
      name: "istio/rate-limit-gateway",
      from: '"domains":["orders.example.com"',
      to: '"domains":["other.example.com"',
    },
    {
      found: "orders: inbound|http|8080 is nowhere",
      name: "istio/everything",
      from: /"inbound\|http\|8080"/g,
      to: '"inbound|http|8081"',
    },
    {
      found: "web: slow.shop.svc.cluster.local:8080 is nowhere",
      name: "istio/options",
      from: /"slow.shop.svc.cluster.local:8080"/g,
      to: '"slow.other.svc.cluster.local:8080"',
    },
    // One of two descriptors is asked about in a way that meets no rule.
    {
      found: "shop: nothing asks for user",
      name: "istio/rate-limit-gateway",
      from: /"descriptor_key":"user"/g,
      to: '"descriptor_key":"users"',
    },
    {
      found: "shop: nothing asks for remote_address",
      name: "istio/rate-limit-gateway",
      from: /,\{"actions":\[\{"remote_address":\{\}\}\]\}/g,
      to: "",
    },
    {
      found: "shop: nothing asks for user",
      name: "istio/everything",
      from: /"name":"envoy\.filters\.http\.ratelimit"/g,
      to: '"name":"another"',
    },
    {
      found: 'outbound|8080||orders.shop.svc.cluster.local has no "health_checks":',
      name: "istio/options",
      from: /"health_checks":/g,
      to: '"checks":',
    },
    {
      found: "shop: nothing asks for tenant",
      name: "istio/quotas-gateway",
      from: /"tenant":\{"custom_value"/g,
      to: '"customer":{"custom_value"',
    },
  ])("finds: $found ($name)", ({ found, name, from, to }) => {
    const given = meshCases().find((one) => one.name === name);
    if (given === undefined) throw new Error(`no case ${name}`);
    const text = JSON.stringify(recordedMesh(given).proxies);
    const changed = text.replace(from, to);
    expect(changed).not.toBe(text);
    expect(meshGaps(JSON.parse(changed), casePolicy(given))).toContain(found);
  });
});

const on = { "@type": "x.ExtensionWithMatcherPerRoute", xds_matcher: {} };

/** Changes of what istiod made, each of which something has to notice. */
const breaks: readonly {
  readonly found: string;
  readonly name?: string;
  readonly own?: string;
  readonly from: RegExp;
  readonly to: string;
}[] = [
  {
    found: "orders.example.com:80: added goes past envoy.filters.http.cors",
    from: /"routes":\[(\{"name":"orders-rule-2-shed")/,
    to: '"routes":[{"name":"added","match":{"prefix":"/auth"},"route":{"cluster":"x"}},$1',
  },
  {
    found: "orders.example.com:80: added is a way in that nobody made",
    from: /"routes":\[(\{"name":"orders-rule-2-shed")/,
    to: '"routes":[{"name":"added","match":{"prefix":"/auth"},"route":{"cluster":"x"}},$1',
  },
  {
    found: "inbound|http|8080: orders-bypass-1 is a way in that nobody made",
    name: "istio/authentication",
    own: "orders",
    from: /("orders-bypass-1".*?"cluster":)"inbound\|8080\|\|"/,
    to: '$1"inbound|9090||"',
  },
  {
    found: "orders.example.com:80: orders-rule-2-shed answers 200",
    from: /("orders-rule-2-shed".*?"status":)503/,
    to: "$1200",
  },
  {
    found: "orders.example.com:80: a route takes all before others",
    from: /("orders-rule-2-shed","match":)\{.*?\},("direct_response")/,
    to: '$1{"prefix":"/"},$2',
  },
  {
    found: "envoy.filters.http.rbac stands behind envoy.filters.http.ratelimit",
    from: /(\{"name":"envoy\.filters\.http\.jwt_authn")/,
    to: '{"name":"envoy.filters.http.ratelimit","typed_config":{"@type":"x.RateLimit"}},$1',
  },
  {
    found: "envoy.filters.http.ext_authz stands behind envoy.filters.http.ratelimit",
    from: /(\{"name":"envoy\.filters\.http\.ext_authz")/,
    to: '{"name":"envoy.filters.http.ratelimit","typed_config":{"@type":"x.RateLimit"}},$1',
  },
  {
    found: "envoy.filters.http.ext_proc acts on hosts of nobody",
    from: /"disabled":true/,
    to: '"disabled":false',
  },
  {
    found: "envoy.filters.http.ext_proc acts on hosts of nobody",
    name: "istio/authentication",
    own: "orders",
    from: /"inbound\|http\|8080"/g,
    to: '"inbound|http|8081"',
  },
  {
    found: "envoy.filters.http.admission_control.orders acts on hosts of nobody",
    name: "istio/admission-control",
    from: /SkipFilter/g,
    to: "DoNothing",
  },
  {
    found: "envoy.filters.http.rate_limit_quota.tenants acts on hosts of nobody",
    name: "istio/quotas-gateway",
    from: /:authority/g,
    to: "x-host",
  },
  {
    found: "envoy.filters.http.rate_limit_quota.tenants is for hosts of nobody",
    name: "istio/quotas-gateway",
    from: /"exact":"orders.example.com"/g,
    to: '"exact":"partner.example.com"',
  },
  {
    found: "partner.example.com:80 is nobody's and is told to envoy.filters.http.ratelimit",
    from: /("name":"partner.example.com:80",)/,
    to: '$1"typed_per_filter_config":{"envoy.filters.http.ratelimit":{"@type":"x"}},',
  },
  {
    found: "search.example.com:80 turns on envoy.filters.http.admission_control.orders",
    name: "istio/admission-control",
    from: /("search.example.com:80".*?"typed_per_filter_config":\{)/,
    to: `$1"envoy.filters.http.admission_control.orders":${JSON.stringify(on)},`,
  },
  {
    found: "orders, outbound: some listeners treat it unlike others",
    from: /("all-orders.example.com:443".*)"orders-rest-shed"/,
    to: '$1"another"',
  },
  {
    found: "asks outbound|8081||headgate.headgate.svc.cluster.local, which is not there",
    from: /"name":"outbound\|8081\|\|headgate.headgate.svc.cluster.local"/g,
    to: '"name":"elsewhere"',
  },
  {
    found: "envoy.filters.http.rate_limit_quota.tenants asks by no host's name",
    name: "istio/quotas-gateway",
    from: /,"authority":"headgate.example.com"/g,
    to: "",
  },
  {
    found: "envoy.filters.http.local_ratelimit is not there",
    from: /"name":"envoy\.filters\.http\.local_ratelimit"/g,
    to: '"name":"another"',
  },
  {
    found: "envoy.filters.http.admission_control.search never acts",
    name: "istio/admission-control",
    from: /"envoy\.filters\.http\.admission_control\.search":/g,
    to: '"another":',
  },
];

describe("meshViolations()", () => {
  it.each(breaks)("finds: $found", ({ found, from, to, ...of }) => {
    const { name = "istio/authentication-gateway", own = "gateway" } = of;
    const given = proxies.find((one) => one.name === name && one.own === own);
    if (given === undefined) throw new Error(`no proxy ${own} of ${name}`);
    const text = JSON.stringify(given.proxy);
    const changed = text.replace(from, to);
    expect(changed).not.toBe(text);
    const { services } = given;
    expect(meshViolations(JSON.parse(changed), { services, own })).toContainEqual(
      expect.stringContaining(found),
    );
  });
});

describe("meshBootstrapOf()", () => {
  it("refuses addresses that nobody put on this machine", () => {
    for (const { proxy } of proxies) {
      const place = { adminPort: 1, listeners: [], endpointPorts: {} };
      expect(() => meshBootstrapOf(proxy, place)).toThrow("is nowhere on this machine");
    }
  });
});
