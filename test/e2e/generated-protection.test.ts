import { describe, expect, it } from "vitest";
import type { Envoy } from "../support/envoy.js";
import { statusOf } from "../support/gateway.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { startSaturableUpstream } from "../support/saturable-upstream.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import {
  sendWaitingRequest,
  startUnreadUpstream,
  type WaitingRequest,
} from "../support/unread-upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function client({ port }: Envoy): () => Promise<HttpAnswer> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return () => http.send({ port });
}

/** A service on loopback, with more lines of its own. */
function orders(port: number, lines: readonly string[] = []): string {
  const all = ["- name: orders", `  upstream: {address: 127.0.0.1, port: ${port}}`];
  return [...all, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** More than all buffers on the way hold: a proxy's are among them. */
const largeBodyBytes = 16 * 2 ** 20;

describe("a generated overload manager", () => {
  it("refuses as the heap fills, shrinks it, and takes requests when it is empty", async () => {
    const upstream = await startUnreadUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: orders(upstream.port),
      proxies: "overload: {maxHeap: 32Mi}",
    });
    const pressure = (): Promise<number> =>
      envoy.stat("overload.envoy.resource_monitors.fixed_heap.pressure");
    const isActive = async (action: string): Promise<boolean> =>
      (await envoy.stat(`overload.envoy.overload_actions.${action}.active`)) === 1;
    expect(await pressure()).toBeLessThan(60);
    expect(await isActive("shrink_heap")).toBe(false);
    const send = (bodyBytes: number): WaitingRequest =>
      sendWaitingRequest(stage, { port: envoy.port, bodyBytes });
    // One more as soon as the last is seen: too many at once, and Envoy would take no connections.
    // After a second it will not be seen any more: as much may have been given back meanwhile.
    let [seen, sameCount] = [-1, 0];
    const isNearlyFull = async (): Promise<boolean> => {
      const now = await pressure();
      sameCount = now === seen ? (sameCount + 1) % 10 : 0;
      if (now < 92 && sameCount === 0) send(largeBodyBytes);
      seen = now;
      return now >= 92;
    };
    await waitFor("the heap is nearly full", isNearlyFull, { withinMs: 60_000, everyMs: 100 });
    await waitFor(
      "memory is given back",
      async () =>
        (await envoy.stat("overload.envoy.overload_actions.shrink_heap.shrink_count")) > 0,
      { withinMs: 30_000, everyMs: 100 },
    );
    // It may be less full by what was given back. Large ones may have been given up, too, since
    // nobody reads their bodies.
    const small: WaitingRequest[] = [];
    await waitFor(
      "a request is refused",
      async () => {
        if (await isNearlyFull()) small.push(send(0));
        return small.some(({ statusLine }) => statusLine?.includes("503"));
      },
      { withinMs: 60_000, everyMs: 100 },
    );
    upstream.hangUp();
    await waitFor("the heap is empty again", async () => (await pressure()) < 85, {
      withinMs: 30_000,
      everyMs: 100,
    });
    expect(await isActive("shrink_heap")).toBe(false);
    expect(await isActive("stop_accepting_requests")).toBe(false);
    let last = send(0);
    await waitFor("a request goes on", async () => {
      // What is left of the heap may be in use for a moment, and one more is refused.
      if (last.statusLine !== undefined) last = send(0);
      return (await envoy.stat("cluster.orders.upstream_rq_active")) === 1;
    });
  });

  it("closes connections above the cap of the process", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: orders(upstream.port),
      proxies: "overload: {maxConnections: 2}",
    });
    const held = [client(envoy)(), client(envoy)()];
    await waitFor("both connections are there", () => upstream.heldCount === 2);
    await expect(client(envoy)()).rejects.toThrow();
    upstream.release();
    expect(await Promise.all(held.map(statusOf))).toEqual(["200", "200"]);
  });
});

describe("a generated adaptive concurrency filter", () => {
  it("lets more in while latency is low, and refuses when it rises", async () => {
    const upstream = await startSaturableUpstream(stage, {
      workerCount: 8,
      meanServiceMs: 10,
      seed: 11,
      reportsLoad: false,
    });
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: orders(upstream.port, ["circuitBreakers: {maxRequests: 500}"]),
      proxies: `
        adaptiveConcurrency:
          maxLimit: 200
          minLimit: 4
          minRtt: {requestCount: 20, interval: 60s}
      `,
    });
    const limit = (): Promise<number> =>
      envoy.stat("http.ingress.adaptive_concurrency.gradient_controller.concurrency_limit");
    const send = client(envoy);
    const light = Traffic.start(stage, { callersCount: 3, call: () => statusOf(send()) });
    const learned = await waitFor(
      "the limit has grown",
      async () => {
        const now = await limit();
        return now >= 20 ? now : undefined;
      },
      { withinMs: 40_000, everyMs: 50 },
    );
    const heavy = Traffic.start(stage, { callersCount: 200, call: () => statusOf(send()) });
    await waitFor("requests are refused", () => heavy.count("503") > 0, { withinMs: 30_000 });
    // It may have grown on until they came.
    let most = learned;
    const least = await waitFor(
      "the limit has shrunk",
      async () => {
        const now = await limit();
        most = Math.max(most, now);
        return now < 0.75 * most ? now : undefined;
      },
      { withinMs: 30_000, everyMs: 20 },
    );
    expect(least).toBeGreaterThanOrEqual(4);
    const refused = await waitFor("a refusal is looked at", async () => {
      const answer = await send();
      return answer.status === 503 ? answer : undefined;
    });
    expect(refused.headers["retry-after"]).toBe("1");
    await Promise.all([light.stop(), heavy.stop()]);
  });

  it("is out of the way of services that have none, and behind an off switch", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          hosts: [orders.example]
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          adaptiveConcurrency: {minLimit: 1, minRtt: {fixed: 10ms}}
        - name: pictures
          hosts: [pictures.example]
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
      `,
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const ask = (host: string): Promise<string> =>
      statusOf(http.send({ port: envoy.port, headers: { host } }));
    const held = [ask("orders.example"), ask("pictures.example"), ask("pictures.example")];
    await waitFor("all are in work", () => upstream.heldCount === 3);
    expect(await ask("orders.example")).toBe("503");
    held.push(ask("pictures.example"));
    await waitFor("one more is in work", () => upstream.heldCount === 4);
    await envoy.setRuntime({ "adaptive_concurrency.enabled": "false" });
    held.push(ask("orders.example"));
    await waitFor("the filter lets through", () => upstream.heldCount === 5);
    upstream.release();
    expect(new Set(await Promise.all(held))).toEqual(new Set(["200"]));
  });
});

describe("a generated admission control filter", () => {
  const rejected = "http.ingress.admission_control.rq_rejected";

  it("refuses while the upstream fails, and lets through when it does not", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: orders(upstream.port, ["outlierDetection: off"]),
      proxies: "admissionControl: {samplingWindow: 2s, minRequestsPerSecond: 1}",
    });
    const send = client(envoy);
    const traffic = Traffic.start(stage, { callersCount: 2, call: () => statusOf(send()) });
    traffic.pauseBetweenCalls(5);
    await waitFor("it has seen success", () => traffic.count("200") > 20);
    expect(await envoy.stat(rejected)).toBe(0);
    upstream.answer = () => ({ status: 500 });
    await waitFor("requests are refused", () => traffic.count("503") > 5, { withinMs: 30_000 });
    expect(await envoy.stat(rejected)).toBeGreaterThan(5);
    upstream.answer = () => ({ status: 200 });
    await waitFor(
      "nothing is refused any more",
      async () => {
        traffic.beginPhase();
        await waitFor("some are answered", () => traffic.counts.total >= 100);
        return traffic.count("503") === 0;
      },
      { withinMs: 40_000 },
    );
    await traffic.stop();
  });

  it("takes refusals of the breaker for what they are", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: orders(upstream.port, ["circuitBreakers: {maxRequests: 1}"]),
      proxies: "admissionControl: {samplingWindow: 2s, minRequestsPerSecond: 1}",
    });
    const send = client(envoy);
    const held = send();
    await waitFor("the breaker is full", () => upstream.heldCount === 1);
    const traffic = Traffic.start(stage, { callersCount: 2, call: () => statusOf(send()) });
    await waitFor("hundreds are refused", () => traffic.count("503") > 300, { withinMs: 30_000 });
    await traffic.stop();
    expect(await envoy.stat("cluster.orders.upstream_rq_active_overflow")).toBeGreaterThan(300);
    expect(await envoy.stat(rejected)).toBe(0);
    upstream.release();
    expect((await held).status).toBe(200);
  });
});
