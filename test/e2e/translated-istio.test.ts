import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inboundPort } from "../../src/generate/istio/mesh-name.js";
import type { ServicePolicy } from "../../src/policy/services/service-policy.js";
import { classRequests, everyClass } from "../support/class-requests.js";
import { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { casePolicy } from "../support/generated.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAsk, HttpClient } from "../support/http-client.js";
import { chainsOf, isHostOf } from "../support/mesh-invariants.js";
import { expectRoom } from "../support/room-visits.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import {
  type MeshPlace,
  meshBootstrapOf,
  meshCases,
  recordedMesh,
  type TranslatedProxy,
} from "../support/translated-istio.js";
import { startMixedUpstream, startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

/**
 * A real Envoy with what istiod itself made of generated objects and of those around them, and a
 * real Headgate behind it.
 */
const stage = useStage("file");

function caseOf(name: string) {
  const given = meshCases().find((one) => one.name === name);
  if (given === undefined) throw new Error(`no case ${name}`);
  return given;
}

type Listener = Omit<MeshPlace["listeners"][number], "port">;

/** The listeners that are asked, and where all others are. */
interface ProxyWish {
  readonly listeners: readonly Listener[];
  readonly endpointPorts: MeshPlace["endpointPorts"];
}

/** Starts a proxy of a case with these listeners; answers ports in their order. */
async function startProxy(
  { name, proxy }: { readonly name: string; readonly proxy: string },
  wish: ProxyWish,
) {
  const sent = recordedMesh(caseOf(name)).proxies[proxy];
  if (sent === undefined) throw new Error(`${name} has no proxy ${proxy}`);
  return startBootstrap(sent, wish);
}

async function startBootstrap(sent: TranslatedProxy, wish: ProxyWish) {
  const adminPort = await freePort();
  const listeners: MeshPlace["listeners"][number][] = [];
  for (const one of wish.listeners) listeners.push({ ...one, port: await freePort() });
  const { endpointPorts } = wish;
  const bootstrap = meshBootstrapOf(sent, { adminPort, listeners, endpointPorts });
  const path = join(stage.folder, `mesh-${adminPort}.json`);
  await writeFile(path, JSON.stringify(bootstrap));
  const ports = listeners.map(({ port }) => port);
  const envoy = await Envoy.startFile(stage, { path, port: ports[0] ?? 0, adminPort });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return { envoy, http, ports };
}

describe("istiod's own translation of admission control, at a real Envoy", () => {
  it.each([
    {
      proxy: "web",
      listeners: ["0.0.0.0_8080"],
      hosts: ["orders.shop.svc.cluster.local", "search.shop.svc.cluster.local"],
    },
    {
      proxy: "gateway",
      listeners: ["0.0.0.0_80", "0.0.0.0_443"],
      hosts: ["orders.example.com", "search.example.com"],
    },
  ])(
    "refuses requests to the service that fails, and nobody's else ($proxy)",
    async ({ proxy, listeners, hosts: [orders = "", search = ""] }) => {
      const failing = await startScriptedUpstream(stage);
      failing.answer = () => ({ status: 500 });
      const { port: healthy } = await startUpstream(stage);
      const { envoy, http, ports } = await startProxy(
        { name: "istio/admission-control", proxy },
        {
          listeners: listeners.map((name) => ({ name })),
          endpointPorts: {
            "192.0.2.11:8080": failing.port,
            "192.0.2.12:8080": healthy,
            "192.0.2.13:9090": healthy,
            "192.0.2.14:8080": healthy,
          },
        },
      );
      for (const port of ports) {
        const counts: Record<string, number> = {};
        for (let round = 0; round < 60; round += 1) {
          for (const host of [orders, search, "partner.example.com"]) {
            const { status } = await http.send({ port, headers: { host } });
            const key = `${host} ${status}`;
            counts[key] = (counts[key] ?? 0) + 1;
          }
        }
        const { [`${orders} 500`]: failed = 0, [`${orders} 503`]: refused = 0, ...rest } = counts;
        expect(rest).toEqual({ [`${search} 200`]: 60, "partner.example.com 200": 60 });
        expect(failed + refused).toBe(60);
        expect(refused).toBeGreaterThan(0);
      }
      await envoy.setRuntime({ "headgate.shed.orders.normal": "100" });
      const arrivedCount = failing.arrivalsMs.length;
      for (const port of ports) {
        const shed = await http.send({ port, headers: { host: orders } });
        expect([shed.status, shed.body]).toEqual([503, "The service is overloaded."]);
        for (const host of [search, "partner.example.com"]) {
          expect((await http.send({ port, headers: { host } })).status).toBe(200);
        }
      }
      expect(failing.arrivalsMs.length).toBe(arrivedCount);
    },
  );
});

/** Of the callers whom the objects around the cases know; the key that signed it is nowhere. */
const token = [
  "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUuY29tIiwic3ViIjoiY",
  "2FsbGVyIn0.JnljRJJf5KStDC1BkPKN7ifqH8dYBd6NqlZSicVj1ER3AKTMfto2BnJw7L9Ojk-tGuJlyhxtv-xgX",
  "GOtWp66OORaMNkZqV5OXe88-WyPGz7Au848OxecDgsPViMFdM_1qMAvrVc8ql2Jpk4CF6Q0AO36nK4-zMED3yfCg",
  "qUjGoasSkvzuE99-KA9v2gwSO-OV6T1HZxzGs50kz-y6tgNwCwke4TYdpZfv2E-_uxSInaAn3y7HPglZ6t8YW1z7",
  "m4LFg2_OO3W8TZ5iXCsHyDLB8Y_x-anZqie5Nwra_NR-Ttio9j5xM3JXimCV9d-X5Y7eWE1gJROoZqVI4Wgun_qX",
  "Q",
].join("");

async function startWithHeadgate(name: string, proxy: string, listeners: readonly Listener[]) {
  const policy = await readFile(join(caseOf(name).folder, "policy.yaml"), "utf8");
  // As `generate kubernetes` has it.
  const env = { HEADGATE_RETRY_AFTER_HEADER: "true" };
  const headgate = await HostedHeadgate.start(stage, { policy, env });
  const seen: { at: string; path: string; canary: unknown }[] = [];
  const startSeeing = async (at: string): Promise<number> => {
    const server = await startScriptedUpstream(stage);
    server.answer = (_, { url = "", headers }) => {
      seen.push({ at, path: url, canary: headers["x-canary"] });
      return { status: 200 };
    };
    return server.port;
  };
  const [upstream, other] = [await startSeeing("upstream"), await startSeeing("other")];
  const authorizer = await startScriptedUpstream(stage);
  authorizer.answer = (_, { url = "" }) => ({ status: url.startsWith("/refused/") ? 403 : 200 });
  const started = await startProxy(
    { name, proxy },
    {
      listeners,
      endpointPorts: {
        "pod:8080": upstream,
        "pod:9090": other,
        "192.0.2.11:8080": upstream,
        "192.0.2.11:9090": other,
        "192.0.2.12:8081": headgate.grpcPort,
        // Of nothing that these proxies do.
        "192.0.2.12:18000": headgate.grpcPort,
        "192.0.2.14:8080": other,
        "192.0.2.15:9000": authorizer.port,
      },
    },
  );
  return { ...started, seen };
}

describe("istiod's own translation of waiting rooms, at a real Envoy", () => {
  it.each([
    {
      name: "istio/waiting-room",
      proxy: "orders",
      listener: { name: "virtualInbound", podPort: 8_080 },
      host: "orders.shop.svc.cluster.local",
    },
    {
      name: "istio/waiting-room-gateway",
      proxy: "gateway",
      listener: { name: "0.0.0.0_80" },
      host: "orders.example.com",
    },
  ])("$name: lets visitors wait, and turns them away", async ({ name, proxy, listener, host }) => {
    const { envoy, http, ports } = await startWithHeadgate(name, proxy, [listener]);
    await expectRoom({ envoy, http, port: ports[0] ?? 0, host });
  });
});

describe("istiod's own translation of authentication, at a real Envoy", () => {
  it.each([
    {
      name: "istio/authentication",
      proxy: "orders",
      listeners: [{ name: "virtualInbound", podPort: 8_080 }],
      host: "orders.shop.svc.cluster.local",
    },
    {
      name: "istio/authentication-gateway",
      proxy: "gateway",
      listeners: [{ name: "0.0.0.0_80" }, { name: "0.0.0.0_8080" }, { name: "0.0.0.0_443" }],
      host: "orders.example.com",
    },
  ])(
    "$name: asks for the token whatever the class of a request, and sheds classes alone",
    async ({ name, proxy, listeners, host }) => {
      const { envoy, http, ports } = await startWithHeadgate(name, proxy, listeners);
      const statuses = async (port: number, headers: Readonly<Record<string, string>>) => {
        const entries = Object.entries(classRequests).map(async ([way, ask]) => {
          const sent = { ...ask, port, headers: { host, ...ask.headers, ...headers } };
          return [way, (await http.send(sent)).status] as const;
        });
        return Object.fromEntries(await Promise.all(entries));
      };
      const known = { authorization: `Bearer ${token}` };
      const forged = { authorization: `Bearer ${token.slice(0, -4)}AAAA` };
      const shedOf: Readonly<Record<string, number>> = {
        rest: 503,
        "half critical": 503,
        low: 503,
      };
      for (const port of ports) {
        await envoy.setRuntime({
          "headgate.shed.orders.normal": "",
          "headgate.shed.orders.low": "",
        });
        expect(await statuses(port, {})).toEqual(everyClass(403));
        expect(await statuses(port, forged)).toEqual(everyClass(401));
        expect(await statuses(port, known)).toEqual(everyClass(200));
        // What is asked elsewhere has its say about critical requests, too.
        const critical = { host, ...known, "x-team": "payments" };
        const asked = { port, path: "/refused/x", method: "DELETE", headers: critical };
        expect((await http.send(asked)).status).toBe(403);

        await envoy.setRuntime({
          "headgate.shed.orders.normal": "100",
          "headgate.shed.orders.low": "100",
        });
        expect(await statuses(port, {})).toEqual(everyClass(403));
        expect(await statuses(port, known)).toEqual({ ...everyClass(200), ...shedOf });
        await envoy.setRuntime({
          "headgate.shed.orders.normal": "",
          "headgate.shed.orders.low": "",
        });

        // What authorization refuses costs nobody anything; two requests an hour are allowed.
        const headers = { host, "x-user": `user-of-${port}` };
        const sent = async (more: Readonly<Record<string, string>>) => {
          return http.send({ port, path: "/orders", headers: { ...headers, ...more } });
        };
        for (let i = 0; i < 5; i += 1) expect((await sent({})).status).toBe(403);
        const answers = [await sent(known), await sent(known), await sent(known)];
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
        // One hit of two comes back in half an hour; Istio's Envoys would say one second.
        const { rawHeaders = [] } = answers[2] ?? {};
        const waits = rawHeaders.filter((_, index) => rawHeaders[index - 1] === "retry-after");
        expect(waits.map((wait) => Math.ceil(Number(wait) / 1_800))).toEqual([1]);
        expect(Number(waits[0])).toBeGreaterThan(1_700);
      }
    },
  );

  it("leaves a second port of a pod and a stranger at a gateway alone", async () => {
    const sidecar = await startWithHeadgate("istio/authentication", "orders", [
      { name: "virtualInbound", podPort: 8_080 },
      { name: "virtualInbound", podPort: 9_090 },
    ]);
    const gateway = await startWithHeadgate("istio/authentication-gateway", "gateway", [
      { name: "0.0.0.0_80" },
      { name: "0.0.0.0_443" },
    ]);
    const places = [
      { started: sidecar, host: "orders.shop.svc.cluster.local", ports: sidecar.ports.slice(1) },
      { started: gateway, host: "partner.example.com", ports: gateway.ports },
    ];
    for (const { started, host, ports } of places) {
      await started.envoy.setRuntime({ "headgate.shed.orders.normal": "100" });
      for (const port of ports) {
        const headers = { host, "x-user": "someone", authorization: `Bearer ${token}` };
        const sent = { port, path: "/orders", headers };
        for (let i = 0; i < 4; i += 1) expect((await started.http.send(sent)).status).toBe(200);
        expect((await started.http.send({ port, headers: { host } })).status).toBe(403);
      }
      expect(started.seen.map(({ at }) => at)).toEqual(Array(4 * ports.length).fill("other"));
    }
  });
});

describe("istiod's own translation of quotas, at a real Envoy", () => {
  it("refuses requests over the quota of a host, and nobody's else", async () => {
    const name = "istio/quotas-gateway";
    const policy = await readFile(join(caseOf(name).folder, "policy.yaml"), "utf8");
    const controlPort = await freePort();
    const env = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const { port: upstream } = await startUpstream(stage);
    const { http, ports } = await startProxy(
      { name, proxy: "gateway" },
      {
        listeners: [{ name: "0.0.0.0_80" }, { name: "0.0.0.0_443" }],
        endpointPorts: {
          "192.0.2.11:8080": upstream,
          "192.0.2.13:8080": upstream,
          "192.0.2.14:8080": upstream,
          "headgate.example.com:8081": controlPort,
          "headgate.example.com:8443": controlPort,
        },
      },
    );
    for (const port of ports) {
      const statusOf = async (host: string, method = "GET"): Promise<number> =>
        (await http.send({ port, method, headers: { host: `${host}.example.com` } })).status;
      await waitFor("the quota of search is used up", async () => {
        const statuses = await Promise.all(Array.from({ length: 10 }, () => statusOf("search")));
        return statuses.includes(429);
      });
      // A service without that quota, a stranger, and requests of which the quota does not speak.
      for (let round = 0; round < 20; round += 1) {
        const others = [statusOf("orders"), statusOf("partner"), statusOf("search", "PUT")];
        expect(await Promise.all(others)).toEqual([200, 200, 200]);
      }
    }
    await waitFor("what has passed is charged", async () => {
      return (await headgate.metric("headgate_quota_hits_total", { outcome: "charged" })) > 20;
    });
  });
});

describe("istiod's own translation of a user's routes, at a real Envoy", () => {
  it("keeps weights, rewrites and headers, whatever the class of a request", async () => {
    const name = "istio/authentication-gateway";
    const { http, ports, seen } = await startWithHeadgate(name, "gateway", [
      { name: "0.0.0.0_80" },
    ]);
    const known = { host: "orders.example.com", authorization: `Bearer ${token}` };
    const classes: Readonly<Record<string, Omit<HttpAsk, "port">>> = {
      rest: { path: "/canary/orders" },
      critical: { path: "/canary/x", method: "DELETE", headers: { "x-team": "payments" } },
      low: { path: "/canary/x", headers: { "x-batch": "1" } },
    };
    for (const ask of Object.values(classes)) {
      seen.length = 0;
      for (let i = 0; i < 60; i += 1) {
        const headers = { ...known, ...ask.headers };
        expect((await http.send({ ...ask, port: ports[0] ?? 0, headers })).status).toBe(200);
      }
      expect(new Set(seen.map(({ at }) => at))).toEqual(new Set(["upstream", "other"]));
      const changed = seen.filter(({ path, canary }) => /^\/v2\//.test(path) && canary === "yes");
      expect(changed).toEqual(seen);
    }
  });
});

/** Starts a proxy with all that it has: one server stands for all others, and for Headgate. */
async function startWhole(proxy: TranslatedProxy) {
  const { port: upstream } = await startMixedUpstream(stage);
  const text = JSON.stringify([proxy.endpoints, proxy.clusters]);
  const addresses = [...text.matchAll(/"address":"([^"]+)","port_value":(\d+)/g)];
  const pods = proxy.clusters.flatMap(({ name }) => {
    const [, port] = /^inbound\|(\d+)\|\|$/.exec(String(name)) ?? [];
    return port === undefined ? [] : [{ name: "virtualInbound", podPort: Number(port) }];
  });
  const names = proxy.listeners.map(({ name }) => String(name));
  const outbound = names.filter((name) => /^0\.0\.0\.0_/.test(name)).map((name) => ({ name }));
  const listeners: readonly Listener[] = [...outbound, ...pods];
  const endpointPorts = Object.fromEntries([
    ...addresses.map(([, address, port]) => [`${address}:${port}`, upstream]),
    ...pods.map(({ podPort }) => [`pod:${podPort}`, upstream]),
  ]);
  return { ...(await startBootstrap(proxy, { listeners, endpointPorts })), listeners };
}

/** What each listener says to a request for each service that it serves. */
async function askAll(
  proxy: TranslatedProxy,
  { own, services }: { readonly own: string; readonly services: readonly ServicePolicy[] },
): Promise<readonly { readonly listener: string; readonly status: number }[]> {
  const { envoy, http, ports, listeners } = await startWhole(proxy);
  const chains = chainsOf(proxy);
  const asks = listeners.flatMap(({ name: listener, podPort }, index) =>
    services.flatMap((service) => {
      if (podPort !== undefined && podPort !== inboundPort(service)) return [];
      const hosts = chains.flatMap((chain) => {
        if (chain.listener !== listener) return [];
        return chain.hosts.filter((host) => isHostOf(host, service, { chain, own }));
      });
      const [domain] = hosts.flatMap(({ domains }) => domains);
      if (domain === undefined) return [];
      const headers = { host: domain === "*" ? service.name : domain };
      return [{ listener, ask: { port: ports[index] ?? 0, headers } }];
    }),
  );
  const answers = asks.map(async ({ listener, ask }) => {
    return { listener, status: (await http.send(ask)).status };
  });
  const all = await Promise.all(answers);
  await envoy.kill();
  return all;
}

/** Listeners at which the objects around a case ask who calls. */
const asking: Readonly<Record<string, string>> = {
  "istio/authentication": "virtualInbound",
  "istio/authentication-gateway": "0.0.0.0_",
};

describe("istiod's own translations", () => {
  const all = meshCases().flatMap((given) => {
    const { services } = casePolicy(given);
    return Object.entries(recordedMesh(given).proxies).map(([own, proxy]) => {
      return { name: given.name, own, services, proxy };
    });
  });

  it.concurrent.each(all)("serve at a real Envoy: $name, $own", async ({ name, proxy, ...of }) => {
    const answers = await askAll(proxy, of);
    const unlike = answers.filter(({ listener, status }) => {
      return status !== (listener.startsWith(asking[name] ?? "none") ? 403 : 200);
    });
    expect(unlike).toEqual([]);
    expect(answers.length).toBeGreaterThan(0);
  });
});
