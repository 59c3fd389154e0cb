import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

type Send = (path?: string, headers?: Readonly<Record<string, string>>) => Promise<HttpAnswer>;

function client(port: number): Send {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return (path = "/", headers = {}) => http.send({ port, path, headers });
}

/** Half of a cluster's requests are dropped: what no policy says, and other control planes send. */
const drops = "  policy: {drop_overloads: [{category: x, drop_percentage: {numerator: 50}}]}";

/** What every refusal carries: when to come back, once, and that it is one. */
const shedHeaders = { "retry-after": "1", "x-envoy-ratelimited": "true" };

describe("a refusal of a generated proxy", () => {
  it("says when to come back: adaptive concurrency", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          adaptiveConcurrency: {minLimit: 1, maxLimit: 1, minRtt: {fixed: 20ms}}
      `,
    });
    const send = client(envoy.port);
    const held = send();
    await waitFor("the limit is reached", () => upstream.heldCount === 1);
    const refused = await send();
    expect([refused.status, refused.body]).toEqual([503, "reached concurrency limit"]);
    expect(refused.headers).toMatchObject(shedHeaders);
    upstream.release();
    expect((await held).status).toBe(200);
  });

  it("says when to come back: a local rate limit", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          localRateLimit: {requests: 1, per: 1s, when: always}
      `,
    });
    const send = client(envoy.port);
    expect((await send()).status).toBe(200);
    const refused = await waitFor("the bucket is empty", async () => {
      const answer = await send();
      return answer.status === 429 && answer;
    });
    expect(refused.headers).toMatchObject({ "x-envoy-ratelimited": "true" });
    expect(refused.headers["retry-after"]).toMatch(/^[01]$/);
  });

  it("says when to come back: admission control", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = () => ({ status: 500 });
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          direction: outbound
          outlierDetection: off
          admissionControl: {minRequestsPerSecond: 1, samplingWindow: 2s, maxRejectPercent: 90}
      `,
    });
    const send = client(envoy.port);
    const refused = await waitFor("too much has failed", async () => {
      const answer = await send();
      return answer.status === 503 && answer;
    });
    expect(refused.headers).toMatchObject(shedHeaders);
  });

  it("says when to come back: what a cluster's endpoints are to be spared", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
      `,
      edit: (text) =>
        text.replace(
          /^( +)load_assignment:$/m,
          (line, margin: string) => `${line}\n${margin}${drops}`,
        ),
    });
    const send = client(envoy.port);
    const refused = await waitFor("one is dropped", async () => {
      const answer = await send();
      return answer.status === 503 && answer;
    });
    expect(refused.headers).toMatchObject(shedHeaders);
  });

  it("says when to come back: the overload manager", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
      `,
      // The whole machine's memory is above it: each request is one too many.
      proxies:
        "overload: {maxHeap: 1Gi, shedFrom: 0.001, shrinkHeapAt: 0.001, stopAcceptingAt: 0.002}",
    });
    const send = client(envoy.port);
    const refused = await waitFor("it is overloaded", async () => {
      const answer = await send();
      return answer.status === 503 && answer;
    });
    expect(refused.body).toBe("envoy overloaded");
    expect(refused.headers).toMatchObject(shedHeaders);
  });
});

describe("a generated shed route", () => {
  it("answers by itself what Headgate says, class by class, and asks nobody", async () => {
    const upstream = await startScriptedUpstream(stage);
    const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
    const { envoy, policy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}}`,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          priority:
            rules:
              - {when: 'request.path.startsWith("/checkout")', is: critical}
              - {when: 'request.headers["x-plan"] == "free"', is: low}
          admission:
            estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}
            gate: {}
            reject: {retryAfter: {min: 3s}}
          concurrency: {law: fixed, limits: {max: 100}}
      `,
    });
    await writeFile(headgate.policyPath, policy);
    await headgate.restart();
    const send = client(envoy.port);
    const asked = (): Promise<number> =>
      envoy.stat("http.ingress.ext_proc.headgate.streams_started");
    await waitFor("Headgate is asked", async () => {
      await send();
      return (
        (await asked()) > 0 && (await headgate.metric("headgate_admission_decisions_total")) > 0
      );
    });
    await envoy.setRuntime({ "headgate.shed.orders.low": "100" });
    const before = await asked();
    const free = await send("/", { "x-plan": "free" });
    expect([free.status, free.headers["retry-after"]]).toEqual([503, "3"]);
    expect(free.headers["x-envoy-ratelimited"]).toBe("true");
    expect(await asked()).toBe(before);
    expect((await send("/")).status).toBe(200);
    expect((await send("/checkout", { "x-plan": "free" })).status).toBe(200);
    await envoy.setRuntime({ "headgate.shed.orders.normal": "100" });
    expect((await send("/")).status).toBe(503);
    expect((await send("/checkout")).status).toBe(200);
    expect(await asked()).toBe(before + 3);
    // Neither counted nor refused, unless somebody hides another path in it.
    expect((await send("/healthz")).status).toBe(200);
    expect(await asked()).toBe(before + 3);
    const hidden = await send("/healthz/..%2forders");
    expect([hidden.status, hidden.headers["location"]]).toEqual([307, "/orders"]);
    await envoy.setRuntime({ "headgate.shed.orders.low": "", "headgate.shed.orders.normal": "" });
    expect((await send("/")).status).toBe(200);
  });
});

describe("a refusal of Headgate through a generated proxy", () => {
  it("names its wait once, and is marked as one", async () => {
    const upstream = await startHoldingUpstream(stage);
    const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
    const { envoy, policy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, rateLimitTimeout: 1s}`,
      more: `
        rateLimits:
          - domain: shop
            descriptors:
              - {key: user, rate_limit: {unit: hour, requests_per_unit: 1}}
      `,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
          admission:
            maxInFlight: 1
            reject: {retryAfter: {min: 2s, jitter: 0}}
      `,
    });
    await writeFile(headgate.policyPath, policy);
    await headgate.restart();
    const send = client(envoy.port);
    // Until Envoy finds Headgate, requests pass unasked.
    await waitFor("Headgate is asked", async () => {
      const passed = send("/healthz");
      await waitFor("it is there", () => upstream.heldCount > 0);
      upstream.release();
      await passed;
      return (await envoy.stat("cluster.headgate.membership_healthy")) === 1;
    });
    const held = send("/", { "x-user": "a" });
    await waitFor("the one permit is taken", () => upstream.heldCount === 1);
    const full = await send();
    expect([full.status, full.headers["retry-after"]]).toEqual([429, "2"]);
    expect(full.headers["x-envoy-ratelimited"]).toBe("true");
    const limited = await send("/", { "x-user": "a" });
    expect(limited.headers).toHaveProperty("x-ratelimit-limit");
    expect(limited.status).toBe(429);
    expect(limited.headers["retry-after"]).toMatch(/^\d+$/);
    expect(limited.headers["x-envoy-ratelimited"]).toBe("true");
    upstream.release();
    expect((await held).status).toBe(200);
  });
});
