import { describe, expect, it } from "vitest";
import type { GenerateOptions } from "../../../../../src/generate/base/generator.js";
import { generateEnvoy } from "../../../../../src/generate/envoy/bootstrap/envoy.js";
import { defaultProxies } from "../../../../../src/policy/proxies/default-proxies.js";
import type { ProxyPolicy } from "../../../../../src/policy/proxies/proxies.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import { askedOnce } from "../../../../../src/policy/services/service-rate-limit.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

interface Asked {
  readonly services: readonly ServicePolicy[];
  readonly options?: Partial<GenerateOptions>;
  readonly proxies?: Partial<ProxyPolicy>;
}

function generated({ services, options = {}, proxies = {} }: Asked) {
  const { context } = testContext({ services, proxies });
  return generateEnvoy(context.policy, { ...context.options, ...options });
}

/** One document as JSON; its message is checked by Envoy's own rules. */
function textOf({ documents }: ReturnType<typeof generated>, path: string): string {
  const found = documents.find((document) => document.path === path);
  const [part] = found?.parts ?? [];
  if (found?.kind.format !== "yaml" || found.kind.is !== "envoy" || part === undefined) {
    throw new Error(`no document ${path}`);
  }
  const value = plain(part);
  for (const one of Array.isArray(value) ? value : [value]) {
    expect(apiProblems(found.kind.message, one)).toEqual([]);
  }
  return JSON.stringify(value);
}

const upstream = { address: "orders.example", port: 8080 };
const limited = {
  domain: "shop",
  descriptors: [askedOnce([{ kind: "remoteAddress", key: "remote_address" }])],
  inExtProc: false,
};
const orders = testService(undefined, { upstream, rateLimit: limited });
const stock = testService(undefined, { name: "stock", hosts: [], upstream, direction: "outbound" });

describe("generateEnvoy()", () => {
  it("makes a proxy before all services, and one beside each", () => {
    const made = generated({ services: [orders, stock] });
    expect(made.problems).toEqual([]);
    expect(made.documents.map(({ path }) => path)).toEqual([
      "edge/envoy.yaml",
      "sidecar/orders/envoy.yaml",
      "sidecar/stock/envoy.yaml",
    ]);
    for (const { path } of made.documents) textOf(made, path);
  });

  it("makes only those that are asked for", () => {
    const paths = (roles: GenerateOptions["roles"]) =>
      generated({ services: [orders], options: { roles } }).documents.map(({ path }) => path);
    expect(paths(["edge"])).toEqual(["edge/envoy.yaml"]);
    expect(paths(["sidecar"])).toEqual(["sidecar/orders/envoy.yaml"]);
  });

  it("makes no sidecar of a service of others, which callers speak TLS to", () => {
    const tls = {
      kind: "files" as const,
      caFile: "/ca.pem",
      certificate: undefined,
      serverName: "bank.example",
      subjectAltNames: ["bank.example"],
    };
    const bank = testService(undefined, {
      name: "bank",
      hosts: [],
      direction: "outbound",
      upstream: { address: "bank.example", port: 443, tls },
    });
    const made = generated({ services: [orders, bank], options: { roles: ["sidecar"] } });
    expect(made.documents.map(({ path }) => path)).toEqual(["sidecar/orders/envoy.yaml"]);
    expect(textOf(made, "sidecar/orders/envoy.yaml")).toContain('"sni":"bank.example"');
  });

  it("has a second listener where a service calls others that their callers protect", () => {
    const made = generated({ services: [orders, stock] });
    expect(textOf(made, "sidecar/orders/envoy.yaml")).toContain('"name":"egress"');
    // It calls nobody whose limits it would hold.
    expect(textOf(made, "sidecar/stock/envoy.yaml")).not.toContain('"name":"egress"');
  });

  it("holds those of Headgate's clusters that it refers to", () => {
    const made = generated({ services: [orders] });
    const text = textOf(made, "edge/envoy.yaml");
    expect(text).toContain('"name":"headgate"');
    expect(text).not.toContain("headgate_control");
    const plainService = testService(undefined, { upstream });
    const alone = textOf(generated({ services: [plainService] }), "edge/envoy.yaml");
    expect(alone).not.toContain('"name":"headgate"');
    const reported = testService(
      { gate: { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 } },
      { upstream },
    );
    const driven = textOf(generated({ services: [reported] }), "edge/envoy.yaml");
    expect(driven).toContain('"name":"headgate_control"');
  });

  it("reaches Headgate over TLS where the policy says so", () => {
    const tls = {
      caFile: "/ca.pem",
      certificate: { certFile: "/cert.pem", keyFile: "/key.pem" },
      serverName: "headgate.example",
    };
    const proxies = { headgate: { ...defaultProxies.headgate, tls } };
    const text = textOf(generated({ services: [orders], proxies }), "edge/envoy.yaml");
    expect(text).toContain('"trusted_ca":{"filename":"/ca.pem"}');
    expect(text).toContain('"sni":"headgate.example"');
    expect(text).toContain('"matcher":{"exact":"headgate.example"}');
    expect(text).toContain('"private_key":{"filename":"/key.pem"}');
  });

  it("bounds connections, streams and callers' hops as the policy says", () => {
    const listener = {
      ...defaultProxies.listener,
      connectionsMax: 7,
      concurrentStreamsMax: 8,
      trustedHops: 2,
    };
    const text = textOf(
      generated({ services: [orders], proxies: { listener } }),
      "edge/envoy.yaml",
    );
    expect(text).toContain('"stat_prefix":"ingress","max_connections":7');
    expect(text).toContain('"max_concurrent_streams":8');
    expect(text).toContain('"use_remote_address":true,"xff_num_trusted_hops":2');
  });

  it("listens where the policy says, which is no name", () => {
    const at = (address: string) =>
      generated({
        services: [orders],
        proxies: { listener: { ...defaultProxies.listener, address } },
      });
    for (const address of ["127.0.0.1", "::"]) {
      const text = textOf(at(address), "edge/envoy.yaml");
      expect(text).toContain(`"address":"${address}","port_value":10000`);
    }
    expect(at("localhost").problems).toMatchObject([{ id: "HG305" }]);
  });

  it("brings no way past filters that a user's own routes set", () => {
    // Beside ext_authz on `/`, the pieces let `/healthz` and `/login` by: their routes came first.
    const reported = testService(
      { gate: { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 } },
      { upstream, rateLimit: limited },
    );
    const made = generated({ services: [reported], options: { form: "fragments" } });
    const path = "fragments/edge/virtual_hosts.yaml";
    const names = [...textOf(made, path).matchAll(/"name":"(orders-[^"]*)"/g)].map(
      ([, one]) => one,
    );
    expect(names.filter((name) => name?.endsWith("-shed") !== true)).toEqual(["orders-rest"]);
    const title = made.documents.find((document) => document.path === path)?.title;
    expect(title).toContain("such as authentication");
    const bypassing = { ...reported, priority: { ...reported.priority, bypassPaths: ["/ping"] } };
    const { problems } = generated({ services: [bypassing], options: { form: "fragments" } });
    expect(problems).toContainEqual(
      expect.objectContaining({
        id: "HG366",
        message: expect.stringContaining("fragments add no"),
      }),
    );
  });

  it("makes pieces, each in a file, that say where they go", () => {
    const options = { form: "fragments", roles: ["sidecar"] } as const;
    const made = generated({ services: [orders, stock], options });
    const paths = made.documents.map(({ path }) => path);
    const folder = "fragments/sidecar/orders";
    expect(paths).toContain(`${folder}/clusters.yaml`);
    expect(paths).toContain(`${folder}/outbound_virtual_hosts.yaml`);
    expect(paths).not.toContain("fragments/sidecar/stock/outbound_virtual_hosts.yaml");
    for (const path of paths) textOf(made, path);
    expect(made.documents.every(({ title }) => title !== "")).toBe(true);
  });

  it("reports a mistake once, however many proxies it is in", () => {
    const lost = testService(undefined, { name: "lost", hosts: [], direction: "outbound" });
    const { problems } = generated({ services: [orders, stock, lost] });
    expect(problems).toMatchObject([{ id: "HG301", spot: { service: "lost" } }]);
  });

  it("has nothing to make of a policy without services", () => {
    expect(generated({ services: [] }).problems).toMatchObject([{ id: "HG304" }]);
  });
});
