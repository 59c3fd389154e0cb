import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { beforeAll, describe, expect, it } from "vitest";
import { grpcRoutePrefix } from "../support/envoy-config.js";
import {
  edgePolicy,
  type Gateway,
  type RateLimitHeaders,
  rateLimitHeaders,
  startHostedGateway,
} from "../support/gateway.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import type { HttpAnswer } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/** Hits of hourly limits come back after minutes: what remains is exact while a test runs. */
const policy = edgePolicy(`
  - key: account
    rate_limit: {period: 6s, requests_per_unit: 2}
  - key: shadowed
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: wide
    rate_limit: {unit: hour, requests_per_unit: 10}
  - key: narrow
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: plan
    value: free
    descriptors:
      - key: user
        rate_limits:
          - {name: pace, unit: hour, requests_per_unit: 100, burst: 2}
          - {name: daily, unit: day, requests_per_unit: 3}
  - key: plan
    value: partner
    descriptors:
      - key: user
        rate_limit: {unit: hour, requests_per_unit: 5}
  - key: path
    value: /api/*
    rate_limit: {unit: hour, requests_per_unit: 1}
  - key: path
    value: /api/orders
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: open
    rate_limit: {unlimited: true}
  - key: blocked
    rate_limit: {unit: hour, requests_per_unit: 0}
  - key: call
    rate_limit: {unit: hour, requests_per_unit: 1}
`);

const descriptorKeys = [
  ["account"],
  ["shadowed"],
  ["wide"],
  ["narrow"],
  ["plan", "user"],
  ["path"],
  ["open"],
  ["blocked"],
  ["call"],
];

const stage = useStage("file");
let gateway: Gateway<HostedHeadgate>;

beforeAll(async () => {
  gateway = await startHostedGateway(stage, {
    policy,
    descriptorKeys,
    envoy: { filter: { rate_limited_as_resource_exhausted: true } },
  });
});

/** One request and what its answer must say; what is not named is not looked at. */
interface Step {
  readonly values: Readonly<Record<string, string>>;
  readonly status: 200 | 429;
  readonly reported?: Partial<RateLimitHeaders>;
}

/** Sends the requests one after the other. */
async function check(steps: readonly Step[]): Promise<void> {
  for (const [i, { values, status, reported = {} }] of steps.entries()) {
    const answer = await gateway.send(values);
    expect({ step: i + 1, status: answer.status, ...rateLimitHeaders(answer) }).toMatchObject({
      step: i + 1,
      status,
      isRateLimited: status === 429,
      ...reported,
    });
  }
}

describe("a limit behind Envoy", () => {
  it("allows until the burst is spent, then answers 429 and says when to come back", async () => {
    const values = { account: "spends-its-burst" };
    const limit = "2, 2;w=6";
    await check([
      { values, status: 200, reported: { limit, remaining: 1, retryAfterSeconds: undefined } },
      { values, status: 200, reported: { limit, remaining: 0 } },
      {
        values,
        status: 429,
        reported: { limit, remaining: 0, resetSeconds: 3, retryAfterSeconds: 3 },
      },
      // A refused request costs nothing: it moves no promise.
      { values, status: 429, reported: { remaining: 0, retryAfterSeconds: 3 } },
      // Another account is another bucket.
      { values: { account: "fresh" }, status: 200, reported: { remaining: 1 } },
    ]);
  });

  it("admits again at the second that retry-after names, and not before", async () => {
    const values = { account: "comes-back" };
    await check([
      { values, status: 200 },
      { values, status: 200 },
    ]);
    const refusals: HttpAnswer[] = [];
    const admitted = await waitFor("the account is admitted again", async () => {
      const answer = await gateway.send(values);
      if (answer.status === 200) return answer;
      refusals.push(answer);
      return undefined;
    });
    expect(refusals.length).toBeGreaterThan(1);
    for (const refusal of refusals) {
      const waitMs = (rateLimitHeaders(refusal).retryAfterSeconds ?? 0) * 1_000;
      expect(waitMs).toBeGreaterThan(0);
      // The header is in whole seconds, rounded up: the true time lies in the second before it.
      expect(admitted.answeredMs).toBeGreaterThan(refusal.sentMs + waitMs - 1_000);
      expect(admitted.sentMs).toBeLessThan(refusal.answeredMs + waitMs + slackMs);
    }
  });

  it("never refuses in shadow mode, and counts what it would have refused", async () => {
    const values = { shadowed: "anyone" };
    await check(Array.from({ length: 5 }, () => ({ values, status: 200 as const })));
    const [headgate] = gateway.headgates;
    expect(await headgate.metric("headgate_decisions_total", shadowOver)).toBe(3);
  });

  it("charges nobody when one of several descriptors is over", async () => {
    const values = { wide: "both", narrow: "both" };
    await check([
      { values, status: 200, reported: { limit: "2, 10;w=3600, 2;w=3600", remaining: 1 } },
      { values, status: 200, reported: { remaining: 0 } },
      { values, status: 429, reported: { remaining: 0 } },
      { values, status: 429 },
    ]);
    // From memory the other limit is left out, and Envoy's headers tell of the one that is over.
    await waitFor("a refusal from memory", async () => {
      const reported = rateLimitHeaders(await gateway.send(values));
      expect(reported).toMatchObject({ isRateLimited: true, remaining: 0 });
      return reported.limit === "2, 2;w=3600" ? reported : undefined;
    });
    expect([await peek("wide", "both"), await peek("narrow", "both")]).toEqual([8, 0]);
    await check([{ values: { wide: "both" }, status: 200, reported: { remaining: 7 } }]);
  });

  it("limits nested descriptors by plan and user, by every limit of the key", async () => {
    const free = { plan: "free", user: "ann" };
    const partner = { plan: "partner", user: "ann" };
    await check([
      { values: free, status: 200, reported: { remaining: 1 } },
      { values: free, status: 200, reported: { remaining: 0 } },
      {
        values: free,
        status: 429,
        reported: { remaining: 0, limit: '100, 100;w=3600;name="pace"' },
      },
      { values: { plan: "free", user: "bob" }, status: 200, reported: { remaining: 1 } },
      { values: partner, status: 200, reported: { remaining: 4 } },
      // A plan that the policy does not know has no limit.
      { values: { plan: "staff", user: "ann" }, status: 200, reported: { remaining: undefined } },
    ]);
  });

  it("prefers the exact value to the wildcard, which counts every value by itself", async () => {
    await check([
      { values: { path: "/api/orders" }, status: 200, reported: { remaining: 2 } },
      { values: { path: "/api/users" }, status: 200, reported: { remaining: 0 } },
      { values: { path: "/api/users" }, status: 429 },
      { values: { path: "/api/items" }, status: 200, reported: { remaining: 0 } },
      { values: { path: "/about" }, status: 200, reported: { remaining: undefined } },
    ]);
  });

  it("lets the unlimited pass and the blocked not", async () => {
    await check([
      { values: { open: "anyone" }, status: 200 },
      { values: { open: "anyone" }, status: 200 },
      { values: { blocked: "anyone" }, status: 429, reported: { remaining: 0 } },
      { values: { blocked: "anyone", open: "anyone" }, status: 429 },
    ]);
  });

  it("answers a gRPC call over its limit with RESOURCE_EXHAUSTED", async () => {
    const client = new Client(`127.0.0.1:${gateway.envoy.port}`, credentials.createInsecure());
    stage.atEnd(() => client.close());
    const metadata = new Metadata();
    metadata.set("x-call", "grpc");
    const call = (): Promise<string> =>
      new Promise((resolve) => {
        const none = (): Buffer => Buffer.alloc(0);
        const path = `${grpcRoutePrefix}/Check`;
        client.makeUnaryRequest(path, none, none, {}, metadata, (error: ServiceError | null) =>
          resolve(status[error?.code ?? status.OK] ?? "unnamed"),
        );
      });
    expect([await call(), await call()]).toEqual(["OK", "RESOURCE_EXHAUSTED"]);
  });
});

/** Ten times what the promise leaves for the network and a busy machine. */
const slackMs = 1_000;

const shadowOver = { rule: "shadowed", outcome: "shadow_over" };

/** Asks `POST /json` for zero hits: what remains, at no cost. */
async function peek(key: string, value: string): Promise<number> {
  const descriptor = { entries: [{ key, value }], hitsAddend: "0" };
  const answer = await gateway.headgates[0].postJson({ domain: "edge", descriptors: [descriptor] });
  expect(answer.status).toBe(200);
  // In JSON, protobuf leaves out what is 0.
  return JSON.parse(answer.body).statuses[0].limitRemaining ?? 0;
}
