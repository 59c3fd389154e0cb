import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { HttpClient } from "../support/http-client.js";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const bootstrapShape = z.looseObject({
  static_resources: z.looseObject({
    clusters: z.array(
      z.looseObject({
        load_assignment: z.looseObject({
          endpoints: z.array(z.looseObject({ lb_endpoints: z.array(z.json()) })),
        }),
      }),
    ),
  }),
});

/** Gives every cluster another host: a policy has one name for all, and tests have no DNS. */
function withHost(port: number): (text: string) => string {
  return (text) => {
    const bootstrap = bootstrapShape.parse(parse(text));
    const address = { socket_address: { address: "127.0.0.1", port_value: port } };
    for (const { load_assignment } of bootstrap.static_resources.clusters) {
      for (const { lb_endpoints } of load_assignment.endpoints) {
        lb_endpoints.push({ endpoint: { address } });
      }
    }
    return stringify(bootstrap);
  };
}

/** A proxy before two hosts of a service, each of which counts its requests. */
async function startTwo(options: string) {
  const hosts = [await startScriptedUpstream(stage), await startScriptedUpstream(stage)] as const;
  const [first, second] = hosts;
  const place = `upstream: {address: 127.0.0.1, port: ${first.port}}`;
  const { envoy } = await startGeneratedEnvoy(stage, {
    services: `- {name: orders, ${place}, ${options}}`,
    edit: withHost(second.port),
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const seen = [0, 0];
  const countOn = (host: ScriptedUpstream, index: number, status: number): void => {
    host.answer = (_, { url }) => {
      if (url === "/") seen[index] = (seen[index] ?? 0) + 1;
      return { status: url === "/healthz" ? status : 200 };
    };
  };
  countOn(first, 0, 200);
  countOn(second, 1, 200);
  const send = (headers: Readonly<Record<string, string>> = {}) =>
    http.send({ port: envoy.port, headers });
  /** How many of some requests went to each host. */
  const counted = async (count: number, headers?: Readonly<Record<string, string>>) => {
    seen.fill(0);
    for (let sent = 0; sent < count; sent += 1) expect((await send(headers)).status).toBe(200);
    return [...seen];
  };
  /** Which hosts some requests went to. */
  const reached = async (headers?: Readonly<Record<string, string>>, count = 12) => {
    return (await counted(count, headers)).map((each) => each > 0);
  };
  return { envoy, send, counted, reached, hosts, countOn };
}

describe("hosts of a generated cluster", () => {
  it("are left out while they say that they are not well", async () => {
    const { reached, hosts, countOn } = await startTwo(
      "healthChecks: {http: {path: /healthz}, timeout: 100ms, interval: 100ms, " +
        "unhealthyThreshold: 1}",
    );
    const isReached = (wanted: readonly boolean[]) =>
      waitFor(`requests reach ${wanted}`, async () => {
        return (await reached()).join() === wanted.join();
      });
    await isReached([true, true]);
    countOn(hosts[1], 1, 503);
    await isReached([true, false]);
    countOn(hosts[1], 1, 200);
    await isReached([true, true]);
  });

  it("get the requests that are alike in a header", async () => {
    const { reached } = await startTwo("loadBalancing: {consistentHash: {header: x-user}}");
    const sides = new Set<string>();
    for (let user = 0; user < 20; user += 1) {
      const hosts = await reached({ "x-user": `user-${user}` }, 4);
      sides.add(hosts.join());
    }
    expect([...sides].sort()).toEqual(["false,true", "true,false"]);
  });

  it("get the requests of a session, by a cookie that is made", async () => {
    const { envoy, reached } = await startTwo(
      "loadBalancing: {consistentHash: {cookie: {name: place, ttl: 1h}}}",
    );
    const sides = new Set<string>();
    await waitFor("sessions have gone to both hosts", async () => {
      // Envoy makes it of the connection's addresses.
      const caller = new HttpClient();
      const { headers } = await caller.send({ port: envoy.port });
      caller.close();
      const [cookie = ""] = headers["set-cookie"] ?? [];
      expect(cookie).toMatch(/^place="?[0-9a-f]+"?; Max-Age=3600; Path=\/; HttpOnly$/);
      const hosts = await reached({ cookie: cookie.split(";")[0] ?? "" }, 6);
      expect(hosts.filter(Boolean)).toEqual([true]);
      return sides.add(hosts.join()).size === 2;
    });
  });

  it("get less at first where they are new, and their part by and by", async () => {
    const windowMs = 3_000;
    const { counted, hosts, countOn } = await startTwo(
      "healthChecks: {http: {path: /healthz}, timeout: 100ms, interval: 100ms, " +
        `unhealthyThreshold: 1}, loadBalancing: {slowStart: {window: ${windowMs}ms}}`,
    );
    const beganMs = performance.now();
    countOn(hosts[1], 1, 503);
    await waitFor("the first host is alone, and new no more", async () => {
      const [, ofSecond] = await counted(4);
      return ofSecond === 0 && performance.now() - beganMs > windowMs + 1_000;
    });
    countOn(hosts[1], 1, 200);
    // The first request that it gets may end a round of its part.
    await waitFor("the second host is back", async () => (await counted(1))[1] === 1);
    const [, early = 0] = await counted(30);
    await waitFor("it gets its part", async () => {
      const [, later = 0] = await counted(30);
      return later >= 12 && later <= 18;
    });
    expect(early).toBeLessThan(10);
  });

  it("are left out where too large a part fails, and not after failures in a row", async () => {
    const { envoy, send, hosts } = await startTwo(
      "outlierDetection: {consecutive5xx: 1000, consecutiveGatewayFailure: 1000, " +
        "interval: 200ms, failurePercentage: {threshold: 50, minHosts: 1, minRequests: 5}}",
    );
    hosts[1].answer = () => ({ status: 500 });
    const ejections = "cluster.orders.outlier_detection.ejections_enforced_failure_percentage";
    await waitFor("it is left out", async () => {
      for (let sent = 0; sent < 20; sent += 1) await send();
      return (await envoy.stat(ejections)) > 0;
    });
  });

  it("have a bound of their own for connections", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {perEndpoint: {maxConnections: 1}}
      `,
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const sent = [http.send({ port: envoy.port }), http.send({ port: envoy.port })];
    await waitFor("one is in work, and one waits", async () => {
      const overflowCount = await envoy.stat("cluster.orders.upstream_cx_overflow");
      return upstream.heldCount === 1 && overflowCount > 0;
    });
    upstream.release();
    await waitFor("the other is in work", () => upstream.heldCount === 1);
    upstream.release();
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses).toEqual([200, 200]);
  });
});

describe("a generated cluster without a host that is well", () => {
  it.each([
    ["sends requests there all the same", "", "upstream connect error"],
    ["answers by itself", "loadBalancing: {healthyPanicThreshold: 0}", "no healthy upstream"],
  ])("%s, where the policy says %j", async (_, balancing, words) => {
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${await freePort()}}
          outlierDetection: {consecutiveLocalOriginFailure: 2, maxEjectionPercent: 100}
          ${balancing}
      `,
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const ejections =
      "cluster.orders.outlier_detection.ejections_enforced_consecutive_local_origin_failure";
    await waitFor("its host is left out", async () => {
      expect((await http.send({ port: envoy.port })).status).toBe(503);
      return (await envoy.stat(ejections)) === 1;
    });
    const { body } = await http.send({ port: envoy.port });
    expect(body).toContain(words);
  });
});
