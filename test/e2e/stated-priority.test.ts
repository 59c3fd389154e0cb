import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import type { GenerateOptions, Generator } from "../../src/generate/base/generator.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import { generateGateway } from "../../src/generate/gateway/gateway.js";
import { generateIstio } from "../../src/generate/istio/istio.js";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import {
  applyPatchPolicies,
  gatewayBootstrap,
  gatewayResources,
} from "../support/gateway-patches.js";
import { policyOf } from "../support/generated.js";
import { type GeneratedEnvoy, startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { applyEnvoyFilter, meshBootstrap } from "../support/istio-mesh.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor, within } from "../support/wait.js";

const stage = useStage("file");

/** Where it stands in an answer what the upstream saw of the caller's header. */
const echoHeader = "x-seen-priority";

/** A caller: its address, as the proxy before this one says, and its certificate. */
interface Caller {
  readonly address: string;
  readonly certificate?: TestCertificate;
}

interface Ask extends Caller {
  readonly host: string;
  readonly path?: string;
}

/** Sends a request that states a class, and answers which one the service saw. */
type Seen = (ask: Ask) => Promise<string>;

const services = (port: number): string => {
  const upstream = `upstream: {address: 127.0.0.1, port: ${port}}`;
  return `
    - {name: nobody, hosts: [nobody], ${upstream}, admission: {maxInFlight: 100}}
    - name: source
      hosts: [source]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {sources: [10.0.0.0/8, "fd00::/8"]}}}
    - name: principal
      hosts: [principal]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {principals: ["spiffe://shop/web", "spiffe://shop/batch/*"]}}}
    - name: other-header
      hosts: [other-header]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {header: x-class, trust: {sources: [10.0.0.0/8]}}}
    - name: anyone
      hosts: [anyone]
      ${upstream}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {anyone: true}}}
    - {name: unasked, hosts: [unasked], ${upstream}}
  `;
};

/** Lets an edge take certificates of clients, as a person would do in the generated file. */
function withTls(text: string, authority: TestAuthority): string {
  const config = parse(text);
  const [listener] = config.static_resources.listeners;
  const server = authority.issue({ names: ["edge"] });
  const inline = (pem: string) => ({ inline_string: pem });
  listener.filter_chains[0].transport_socket = {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
      common_tls_context: {
        tls_certificates: [
          { certificate_chain: inline(server.certificate), private_key: inline(server.key) },
        ],
        validation_context: { trusted_ca: inline(authority.certificate) },
      },
    },
  };
  return JSON.stringify(config);
}

function askOf({ ports }: GeneratedEnvoy, authority: TestAuthority): Seen {
  return async ({ host, path = "/", address, certificate }) => {
    const answered = new Promise<string>((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port: ports.port,
          path,
          servername: "edge",
          ca: authority.certificate,
          cert: certificate?.certificate,
          key: certificate?.key,
          agent: false,
          headers: {
            host,
            "x-forwarded-for": address,
            "x-request-priority": "critical",
            "X-Class": "critical",
          },
        },
        (response) => {
          response.resume();
          response.once("end", () => {
            resolve(`${response.statusCode} ${response.headers[echoHeader]}`);
          });
        },
      );
      sent.once("error", reject);
      sent.end();
    });
    return within("the edge answers", 30_000, answered);
  };
}

const stranger: Caller = { address: "192.0.2.7" };

/** Starts a service that says which priority headers it saw; answers its port. */
async function startEchoUpstream(): Promise<number> {
  const upstream = await startScriptedUpstream(stage);
  upstream.answer = (_, { headers }) => {
    const seen = `${headers["x-request-priority"]} ${headers["x-class"]}`;
    return { status: 200, headers: { [echoHeader]: seen } };
  };
  return upstream.port;
}

/** An edge that takes client certificates, before services that trust different callers. */
async function startEdge() {
  const authority = new TestAuthority();
  const upstreamPort = await startEchoUpstream();
  const headgate = await HeadgateProcess.prepare(stage, { policy: "" });
  const edge = await startGeneratedEnvoy(stage, {
    services: services(upstreamPort),
    listener: { trustedHops: 1 },
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: 1}`,
    edit: (text) => withTls(text, authority),
  });
  await writeFile(headgate.policyPath, edge.policy);
  await headgate.restart();
  return { authority, headgate, seen: askOf(edge, authority) };
}

describe("a priority header that a caller states", () => {
  it("reaches a service only from trusted callers, with Headgate there and killed", async () => {
    const { authority, headgate, seen } = await startEdge();
    const named = (uri: string): Caller => ({
      ...stranger,
      certificate: authority.issue({ uris: [uri] }),
    });
    const friend: Caller = { address: "10.1.2.3" };
    const sixth: Caller = { address: "fd00::7" };
    // On a busy machine an answer of Headgate may come after the proxy's time for it is over.
    await waitFor("Headgate says the class of a caller whom nobody trusts", async () => {
      return (await seen({ host: "nobody", ...friend })) === "200 normal critical";
    });
    expect(await seen({ host: "source", ...friend })).toBe("200 critical critical");

    headgate.process.signal("SIGKILL");
    await headgate.process.exited;

    const strangers = {
      "nobody /": await seen({ host: "nobody", ...stranger }),
      "nobody /, from a network that others trust": await seen({ host: "nobody", ...friend }),
      "nobody /healthz": await seen({ host: "nobody", path: "/healthz", ...stranger }),
      "nobody /login": await seen({ host: "nobody", path: "/login", ...stranger }),
      "source /": await seen({ host: "source", ...stranger }),
      "source /healthz": await seen({ host: "source", path: "/healthz", ...stranger }),
      "principal /": await seen({ host: "principal", ...stranger }),
      "principal /, from a network that others trust": await seen({ host: "principal", ...friend }),
      "principal /, named otherwise": await seen({
        host: "principal",
        ...named("spiffe://shop/web/2"),
      }),
      "principal /healthz": await seen({ host: "principal", path: "/healthz", ...stranger }),
      "unasked /": await seen({ host: "unasked", ...stranger }),
    };
    for (const [what, answer] of Object.entries(strangers)) {
      expect(answer, what).toBe("200 undefined critical");
    }
    expect(await seen({ host: "other-header", ...stranger })).toBe("200 critical undefined");

    const trusted = {
      "source /": await seen({ host: "source", ...friend }),
      "source /, IPv6": await seen({ host: "source", ...sixth }),
      "source /healthz": await seen({ host: "source", path: "/healthz", ...friend }),
      "principal /": await seen({ host: "principal", ...named("spiffe://shop/web") }),
      "principal /, by its beginning": await seen({
        host: "principal",
        ...named("spiffe://shop/batch/7"),
      }),
      "principal /healthz": await seen({
        host: "principal",
        path: "/healthz",
        ...named("spiffe://shop/web"),
      }),
      "other-header /": await seen({ host: "other-header", ...friend }),
      "anyone /": await seen({ host: "anyone", ...stranger }),
      "anyone /healthz": await seen({ host: "anyone", path: "/healthz", ...stranger }),
    };
    for (const [what, answer] of Object.entries(trusted)) {
      expect(answer, what).toBe("200 critical critical");
    }
  });
});

/** Services of a mesh or a gateway, one of which trusts somebody; none reaches a Headgate. */
const meshPolicy = policyOf([
  {
    file: "policy.yaml",
    text: `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  proxies:
    headgate: {address: headgate.headgate.svc.cluster.local}
    gateway: {listeners: [{name: http, port: 80}]}
  services:
    - name: nobody
      hosts: [nobody.example.com]
      upstream: {address: nobody.shop.svc.cluster.local, port: 8080}
      admission: {maxInFlight: 100}
      priority: {from: {header: x-class}}
    - name: network
      hosts: [network.example.com]
      upstream: {address: network.shop.svc.cluster.local, port: 8080}
      admission: {maxInFlight: 100}
      priority: {from: {trust: {sources: [10.0.0.0/8]}}}
`,
  },
]);

const hosts = ["nobody.example.com", "network.example.com", "other.example.com"];

function objectsOf(generate: Generator, more: Partial<GenerateOptions> = {}) {
  const options: GenerateOptions = { ...defaultGenerateOptions, namespace: "shop", ...more };
  const { documents } = generate(meshPolicy, options);
  const objects = documents.flatMap(({ parts }) => parts.map((part) => Object(plainTree(part))));
  // A kustomization has no name.
  return objects.filter(({ metadata }) => metadata !== undefined);
}

/** Istio's gateway, as it patches it; with sidecars it asks nobody. */
const istioGateway = (roles: GenerateOptions["roles"]) => (port: number, upstreamPort: number) => {
  const objects = objectsOf(generateIstio, { roles });
  const filters = objects.filter(({ metadata }) => metadata.name.startsWith("headgate-gateway"));
  const cluster = "outbound|8080||upstream";
  const names = [cluster, "outbound|8081||headgate.headgate.svc.cluster.local"];
  const patched = applyEnvoyFilter(filters, {
    context: "GATEWAY",
    listenerPort: port,
    hosts: hosts.map((host) => ({ name: `${host}:80`, cluster })),
    clusters: names.map((name) => ({ name, service: name })),
  });
  // Routes that are ours lead to the service by its name in the mesh.
  const text = JSON.stringify(meshBootstrap(patched));
  const own = text.replaceAll(/outbound\|8080\|\|\w+\.shop[\w.]*/g, cluster);
  return finished(own, { cluster, upstreamPort });
};

/** Envoy Gateway's, as it patches it. */
function envoyGateway(port: number, upstreamPort: number): object {
  const objects = objectsOf(generateGateway);
  const cluster = "httproute/shop/nobody/rule/0";
  const extProcs = objects
    .filter(({ kind }) => kind === "EnvoyExtensionPolicy")
    .map(({ metadata }) => `envoyextensionpolicy/shop/${metadata.name}/extproc/0`);
  const resources = gatewayResources({
    listener: "shop/shop/http",
    port,
    hosts: hosts.map((host) => ({ host, cluster })),
    extProcs,
  });
  const patches = objects.filter(({ kind }) => kind === "EnvoyPatchPolicy");
  const patched = gatewayBootstrap(applyPatchPolicies(patches, resources));
  return finished(JSON.stringify(patched), { cluster, upstreamPort });
}

/** A bootstrap with an upstream, and callers' addresses as a proxy in front says. */
function finished(
  text: string,
  { cluster, upstreamPort }: { readonly cluster: string; readonly upstreamPort: number },
): object {
  const config = JSON.parse(text);
  const address = { socket_address: { address: "127.0.0.1", port_value: upstreamPort } };
  const { listeners, clusters } = config.static_resources;
  const own = clusters.find(({ name }: { readonly name: string }) => name === cluster);
  own.load_assignment.endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }];
  const chain = listeners[0].default_filter_chain ?? listeners[0].filter_chains[0];
  Object.assign(chain.filters[0].typed_config, {
    use_remote_address: true,
    xff_num_trusted_hops: 1,
  });
  return config;
}

describe("a patched gateway without any Headgate", () => {
  it.each([
    ["Istio", istioGateway(["edge"])],
    ["Istio, before sidecars", istioGateway(["edge", "sidecar"])],
    ["Envoy Gateway", envoyGateway],
  ] as const)("of %s hands on only what trusted callers state", async (name, configOf) => {
    const upstreamPort = await startEchoUpstream();
    const [port, adminPort] = [await freePort(), await freePort()];
    const admin = { address: { socket_address: { address: "127.0.0.1", port_value: adminPort } } };
    const path = join(stage.folder, `${name.replaceAll(/\W/g, "-")}.json`);
    const { stats_config: _, ...config } = Object(configOf(port, upstreamPort));
    await writeFile(path, JSON.stringify({ ...config, admin }));
    await Envoy.startFile(stage, { path, port, adminPort });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const seen = async (service: string, address: string, to = "/"): Promise<unknown> => {
      const host = `${service}.example.com${name.startsWith("Istio") ? ":80" : ""}`;
      const stated = { "x-request-priority": "critical", "x-class": "critical" };
      const headers = { host, "x-forwarded-for": address, ...stated };
      return (await http.send({ port, path: to, headers })).headers[echoHeader];
    };
    for (const to of ["/", "/healthz"]) {
      expect(await seen("nobody", "192.0.2.7", to)).toBe("critical undefined");
      expect(await seen("nobody", "10.1.2.3", to)).toBe("critical undefined");
      expect(await seen("network", "192.0.2.7", to)).toBe("undefined critical");
      expect(await seen("network", "10.1.2.3", to)).toBe("critical critical");
    }
    expect(await seen("other", "192.0.2.7")).toBe("critical critical");
  });
});
