import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../../../../src/app/base/listen.js";
import { createProcessMetrics } from "../../../../src/app/base/metrics.js";
import { decisionMetrics, storeMetrics } from "../../../../src/app/metrics/decision-metrics.js";
import { policyMetrics } from "../../../../src/app/metrics/policy-metrics.js";
import type { PolicyStatus } from "../../../../src/app/policy/active-policy.js";
import {
  createHttpServer,
  createMonitoringServer,
  type HttpParts,
  httpBodyBytesMax,
  httpHeadBytesMax,
} from "../../../../src/app/ports/http.js";
import { ServiceError } from "../../../../src/core/base/errors.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import { descriptorCountMax, entryCountMax } from "../../../../src/decide/rate-limit/query.js";
import { Health } from "../../../../src/rpc/grpc/health.js";
import { partialMsMax } from "../../../../src/wire/grpc/partial-bytes.js";
import { createTestDecider } from "../../../support/decider.js";
import { plainExtras } from "../../../support/extras.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { realClock } from "../../../support/real-clock.js";
import { waitFor, within } from "../../../support/wait.js";

const policy = testPolicy([{ path: ["user"], effect: [testLimit(2)] }], "v7");

let health: Health;
let status: PolicyStatus;
let isDegraded: boolean;
let isStoreAway: boolean;
let hasJson: boolean;
let failure: unknown;
let bugs: unknown[];
let bodyClock: FakeClock;
let port: number;
let parts: HttpParts;
let closeServer: () => Promise<void>;

const loadedStatus: PolicyStatus = {
  version: "v7",
  ruleCount: 1,
  limitCount: 2,
  domainCount: 1,
  serviceCount: 2,
  roomCount: 3,
  budgetCount: 3,
  loadedCount: 1,
  refusedCount: 0,
};

const place = {
  host: "127.0.0.1",
  port: 0,
  hostSetting: "HOST",
  portSetting: "PORT",
  connectionsMax: 100,
};

beforeEach(async () => {
  health = new Health();
  health.serve();
  status = loadedStatus;
  isDegraded = false;
  isStoreAway = false;
  hasJson = true;
  failure = undefined;
  bugs = [];
  const clock = realClock;
  bodyClock = new FakeClock();
  const counters = new DecisionCounters();
  const policies = {
    current: () => policy,
    get status() {
      return status;
    },
  };
  const decider = createTestDecider({ policies, clock, counters });
  const metrics = createProcessMetrics();
  metrics.add(
    policyMetrics(policies),
    decisionMetrics({
      counters,
      policies,
      overloadCause: () => undefined,
      inFlightCount: () => 0,
    }),
    storeMetrics({
      counters,
      isDegraded: () => isDegraded,
      replicaCount: () => 3,
      memoryKeyCount: () => undefined,
      storeKind: "redis",
    }),
  );
  parts = {
    decider: {
      prepare: (query, isKept) => decider.prepare(query, isKept),
      ask: (prepared, call) => {
        if (failure !== undefined) call.failed(failure);
        else decider.ask(prepared, call);
      },
      get isDegraded() {
        return isDegraded;
      },
    },
    get hasJson() {
      return hasJson;
    },
    extras: plainExtras,
    counters,
    clock: bodyClock,
    health,
    metrics,
    policies,
    storeKind: "redis",
    isStoreAway: () => isStoreAway,
    onBug: (thrown) => bugs.push(thrown),
  };
  const server = createHttpServer(parts);
  ({ port } = await listen(server, place));
  closeServer = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
});

afterEach(() => closeServer());

function send(path: string, init?: RequestInit): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, init);
}

function post(body: unknown): Promise<Response> {
  return send("/json", { method: "POST", body: JSON.stringify(body) });
}

/** Sends bytes as they are, and answers all that comes back until the connection ends. */
function sendRaw(text: string): Promise<string> {
  const answer = new Promise<string>((resolve) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk) => {
      received += chunk;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
  return within("the connection ends", 10_000, answer);
}

const question = {
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "caller-73" }] }],
};

describe("health", () => {
  it.each(["/healthcheck", "/livez", "/readyz"])("is 200 on %s while serving", async (path) => {
    expect((await send(path)).status).toBe(200);
  });

  it("waits while there is no policy, and says what it waits for", async () => {
    const counts = {
      ruleCount: 0,
      limitCount: 0,
      domainCount: 0,
      serviceCount: 0,
      roomCount: 0,
      budgetCount: 0,
      loadedCount: 0,
      refusedCount: 0,
    };
    status = { ...counts, controlPlane: { isConnected: false, lastFailure: "unreachable" } };
    const waiting = {
      status: "waiting for a policy",
      policy: { controlPlane: { isConnected: false, lastFailure: "unreachable" } },
    };
    // A start that is forced serves all the same; then nobody should be sent here yet either.
    for (const isServing of [false, true]) {
      if (isServing) health.serve();
      else health.stopServing();
      const response = await send("/readyz");
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject(waiting);
    }
  });

  it("is degraded while the control plane is away", async () => {
    status = { ...status, controlPlane: { isConnected: false, lastFailure: "lost" } };
    const response = await send("/readyz");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: "degraded" });
  });

  it("fails while stopping, but the process is alive", async () => {
    health.stopServing();
    expect((await send("/healthcheck")).status).toBe(500);
    expect((await send("/readyz")).status).toBe(503);
    expect((await send("/livez")).status).toBe(200);
  });

  it("tells policy and store in detail", async () => {
    status = { ...status, loadedEpochUs: 1_700_000_000_000_000 };
    expect(await (await send("/readyz")).json()).toEqual({
      status: "ready",
      policy: {
        version: "v7",
        domains: 1,
        rules: 1,
        limits: 2,
        services: 2,
        waitingRooms: 3,
        budgets: 3,
        loadedAt: "2023-11-14T22:13:20.000Z",
      },
      store: { kind: "redis", state: "ok" },
    });
  });

  it("stays 200 and says degraded while the store is away or a new policy is refused", async () => {
    isDegraded = true;
    const away = await send("/readyz");
    expect(away.status).toBe(200);
    expect(await away.json()).toMatchObject({
      status: "degraded",
      store: { state: "unavailable" },
    });
    isDegraded = false;
    isStoreAway = true;
    // Nobody asks, so no call has failed.
    expect(await (await send("/readyz")).json()).toMatchObject({
      status: "degraded",
      store: { state: "unavailable" },
    });
    isStoreAway = false;
    status = { ...status, lastProblem: "p.yaml:1:2: HG101 words" };
    const stale = await send("/readyz");
    expect(stale.status).toBe(200);
    expect(await stale.json()).toMatchObject({
      status: "degraded",
      policy: { lastReloadProblem: "p.yaml:1:2: HG101 words" },
    });
  });

  it("ends connections with their next answer while stopping", async () => {
    expect((await send("/livez")).headers.get("connection")).toBe("keep-alive");
    health.stopServing();
    expect((await send("/livez")).headers.get("connection")).toBe("close");
  });
});

describe("POST /json", () => {
  it("answers 200 until the limit is used up, then 429, in proto3 JSON", async () => {
    const first = await post(question);
    expect(first.status).toBe(200);
    expect(first.headers.get("content-type")).toBe("application/json");
    expect(await first.json()).toEqual({
      overallCode: "OK",
      statuses: [
        {
          code: "OK",
          currentLimit: { requestsPerUnit: 2, unit: "MINUTE" },
          limitRemaining: 1,
          durationUntilReset: "30s",
        },
      ],
    });
    await post(question);
    const third = await post(question);
    expect(third.status).toBe(429);
    expect(await third.json()).toMatchObject({ overallCode: "OVER_LIMIT" });
  });

  it.each([
    ["no JSON", "{caller-73"],
    ["another shape", '{"domain":"caller-73","nothing":1}'],
    ["a wrong type", '{"domain":["caller-73"]}'],
    ["no descriptors", '{"domain":"caller-73"}'],
    ["nothing", ""],
  ])("answers 400 without echoing the body for %s", async (_, body) => {
    const answer = await send("/json", { method: "POST", body });
    expect(answer.status).toBe(400);
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject({ code: "REQUEST_INVALID" });
    expect(text).not.toContain("caller-73");
  });

  it("gives no hits back, which anybody could ask for", async () => {
    const [descriptor] = question.descriptors;
    const answer = await post({
      ...question,
      descriptors: [descriptor, { ...descriptor, isNegativeHits: true }],
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("descriptors[1].isNegativeHits");
  });

  it.each([
    ["descriptors", { domain: "shop", descriptors: Array(descriptorCountMax + 1).fill({}) }],
    ["entries", { domain: "shop", descriptors: [{ entries: Array(entryCountMax + 2).fill({}) }] }],
    ["lists and objects", { domain: "shop", nobodyReadsThis: Array(10_000).fill([]) }],
  ])("answers 413 for more %s than are counted, and makes nothing of them", async (_, body) => {
    const answer = await post(body);
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ code: "REQUEST_TOO_LARGE" });
  });

  it("answers 403 where it is off", async () => {
    hasJson = false;
    const answer = await post(question);
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain("HEADGATE_JSON");
  });

  it("answers a failed store with its code, and 503", async () => {
    failure = new ServiceError("STORE_TIMEOUT");
    const answer = await post(question);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: "STORE_TIMEOUT" });
    expect(bugs).toEqual([]);
  });

  it("answers a bug with 500 and without its words, and lives on", async () => {
    failure = new TypeError("caller-73");
    const answer = await post(question);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("caller-73");
    expect(bugs).toHaveLength(1);
    failure = undefined;
    expect((await post(question)).status).toBe(200);
  });

  // 75 s, in which 500 connections of one address held 32 MiB.
  it("answers 408 to a body that is not whole in time, and ends the connection", async () => {
    const head = "POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n";
    const answer = sendRaw(`${head}{"domain":`);
    await waitFor("the body has begun", () => bodyClock.timerCount === 1);
    bodyClock.advance(partialMsMax - 1);
    expect((await post(question)).status).toBe(200);
    bodyClock.advance(1);
    bodyClock.runTurns();
    expect(await answer).toContain("HTTP/1.1 408 ");
  });

  it(`takes bodies up to ${httpBodyBytesMax} bytes and answers 413 above`, async () => {
    const text = JSON.stringify(question);
    const largest = text + " ".repeat(httpBodyBytesMax - text.length);
    expect((await send("/json", { method: "POST", body: largest })).status).toBe(200);
    const head = "POST /json HTTP/1.1\r\nhost: x\r\n";
    const stated = await sendRaw(`${head}content-length: ${httpBodyBytesMax + 1}\r\n\r\n`);
    expect(stated).toContain("HTTP/1.1 413 ");
    const size = (httpBodyBytesMax + 1).toString(16);
    const body = `${size}\r\n${" ".repeat(httpBodyBytesMax + 1)}\r\n`;
    expect(await sendRaw(`${head}transfer-encoding: chunked\r\n\r\n${body}`)).toContain(
      "HTTP/1.1 413 ",
    );
  });
});

describe("/metrics", () => {
  it("is OpenMetrics for who asks for that", async () => {
    await post(question);
    const headers = { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" };
    const answer = await send("/metrics", { headers });
    const text = await answer.text();
    expect(answer.headers.get("content-type")).toContain("application/openmetrics-text");
    expect(text).toContain('headgate_requests_total{code="ok"} 1\n');
    expect(text.endsWith("\n# EOF\n")).toBe(true);
  });

  it("shows decisions by domain, rule and outcome, and no caller's value", async () => {
    for (let i = 0; i < 3; i += 1) await post(question);
    const answer = await send("/metrics");
    const text = await answer.text();
    expect(answer.headers.get("content-type")).toContain("text/plain");
    for (const line of [
      'headgate_decisions_total{domain="shop",rule="user",outcome="ok"} 2',
      'headgate_decisions_total{domain="shop",rule="user",outcome="over"} 1',
      'headgate_requests_total{code="ok"} 2',
      'headgate_requests_total{code="over_limit"} 1',
      "headgate_decision_duration_seconds_count 3",
      'headgate_decision_duration_seconds_bucket{le="+Inf"} 3',
      'headgate_policy_info{version="v7"} 1',
      "headgate_live_replicas 3",
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).not.toContain("caller-73");
  });
});

describe("what nobody serves", () => {
  it("is 404 with a hint", async () => {
    const answer = await send("/jsonn?x=1");
    expect(answer.status).toBe(404);
    expect(await answer.text()).toContain("/json");
  });

  it("is 405 with the method to use", async () => {
    const answer = await send("/json");
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("POST");
    expect((await send("/livez", { method: "DELETE" })).status).toBe(405);
  });

  it("answers HEAD like GET, without a body", async () => {
    const answer = await send("/livez", { method: "HEAD" });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe("");
  });
});

describe("hostile bytes", () => {
  it.each([
    ["no HTTP", "\u0000\u0001\u0002garbage\r\n\r\n", "400"],
    ["two lengths", "POST /json HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "400"],
    [
      "a head that is too large",
      `GET /livez HTTP/1.1\r\nx: ${"v".repeat(httpHeadBytesMax)}\r\n\r\n`,
      "431",
    ],
  ])("end the connection and nothing else: %s", async (_, text, code) => {
    expect(await sendRaw(text)).toContain(`HTTP/1.1 ${code} `);
    expect((await send("/livez")).status).toBe(200);
    expect(bugs).toEqual([]);
  });

  it("is told that the connection ends, where nobody has read the body", async () => {
    const answer = await sendRaw("POST /livez HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}");
    expect(answer).toMatch(/^HTTP\/1\.1 405 [\s\S]*\r\nconnection: close\r\n/i);
  });

  it("may stop in the middle of a body", async () => {
    const socket = connect(port, "127.0.0.1");
    socket.write("POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
    await new Promise((resolve) => socket.once("ready", resolve));
    socket.destroy();
    expect((await send("/livez")).status).toBe(200);
    expect(bugs).toEqual([]);
  });
});

describe("createMonitoringServer()", () => {
  it("answers probes and scrapers, and decides nothing", async () => {
    const server = createMonitoringServer(parts);
    const { port: monitoringPort } = await listen(server, place);
    const url = `http://127.0.0.1:${monitoringPort}`;
    for (const path of ["/healthcheck", "/livez", "/readyz", "/metrics"]) {
      expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
    }
    const json = await fetch(`${url}/json`, { method: "POST", body: "{}" });
    expect(json.status).toBe(404);
    expect(await json.text()).not.toContain("/json");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});
