import { beforeAll, describe, expect, it } from "vitest";
import { statistics } from "../support/drop-in.js";
import { fromHeader, httpFilter, type Json } from "../support/envoy-config.js";
import {
  edgePolicy,
  type Gateway,
  rateLimitHeaders,
  startHostedGateway,
} from "../support/gateway.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import type { HttpAnswer } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

/** Hits of yearly limits do not come back while a test runs. */
const policy = edgePolicy(`
  - key: user
    rate_limit: {name: usual, unit: year, requests_per_unit: 1}
  - key: partner
    rate_limit: {unit: year, requests_per_unit: 3, replaces: [{name: usual}]}
  - key: model
    value: large
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
  - key: model
    value: small
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: tenant
    detailed_metric: true
    metadata: {owner: {team: edge}, tier: gold}
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: fields
    headers: ietf
    rate_limits:
      - {name: pace, unit: hour, requests_per_unit: 100}
      - {name: yearly, unit: year, requests_per_unit: 1}
  - key: problem
    body: problem+json
    rate_limit: {name: trial, unit: hour, requests_per_unit: 1}
  - key: window
    rate_limit: {unit: day, requests_per_unit: 1, algorithm: fixed_window}
  - key: calendar
    rate_limit: {unit: month, requests_per_unit: 1, time_zone: UTC}
  - key: tokens
    rate_limit: {unit: hour, requests_per_unit: 3600, burst: 100, charge: settle}
`);

function onHeader(key: string, fields: Json = {}): Json {
  return { actions: [fromHeader(`x-${key}`, key)], ...fields };
}

/** Requests may use either model: each is a descriptor of its own. */
function onModel(value: string): Json {
  const action = { descriptor_key: "model", descriptor_value: value };
  const isAsked = { name: "x-models", present_match: true };
  return { actions: [{ header_value_match: { ...action, headers: [isAsked] } }] };
}

const keys = ["user", "partner", "tenant", "fields", "problem", "window", "calendar"];

const rateLimits: readonly Json[] = [
  ...keys.map((key) => onHeader(key)),
  onModel("large"),
  onModel("small"),
  onHeader("tokens", { hits_addend: { number: 0 } }),
  // What a filter wrote down while the request ran is what it costs.
  onHeader("tokens", {
    apply_on_stream_done: true,
    hits_addend: { format: "%DYNAMIC_METADATA(cost:tokens)%" },
  }),
];

const costFilter = httpFilter("set_metadata", "Config", {
  metadata: [{ metadata_namespace: "cost", value: { tokens: "160" } }],
});

/** A later filter that reads what the answer said. */
const laterFilter = httpFilter("header_mutation", "HeaderMutation", {
  mutations: {
    response_mutations: [
      reported("x-owner", "metadata:owner:team"),
      reported("x-domain", "domain"),
      reported("x-asked", "descriptors"),
      echoed("x-seen-limit", "x-up-limit"),
      echoed("x-seen-left", "x-up-left"),
      echoed("x-seen-wait", "x-up-wait"),
    ],
  },
});

function reported(key: string, path: string): Json {
  return answered(key, `%DYNAMIC_METADATA(envoy.filters.http.ratelimit:${path})%`);
}

/** What the request says that goes to the upstream. */
function echoed(key: string, header: string): Json {
  return answered(key, `%REQ(${header})%`);
}

function answered(key: string, value: string): Json {
  return { append: { header: { key, value }, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" } };
}

const stage = useStage("file");
let gateway: Gateway<HostedHeadgate>;
let shadow: Gateway<HostedHeadgate>;

beforeAll(async () => {
  const envoy = { rateLimits, filtersBefore: [costFilter], filtersAfter: [laterFilter] };
  const env = {
    RESPONSE_DYNAMIC_METADATA: "true",
    LIMIT_RESPONSE_HEADERS_ENABLED: "true",
    LIMIT_LIMIT_HEADER: "X-Shop-Limit",
    LIMIT_REMAINING_HEADER: "X-Shop-Left",
    LIMIT_RESET_HEADER: "X-Shop-Wait",
    LIMIT_REQUEST_HEADERS_ENABLED: "true",
    LIMIT_REQUEST_LIMIT_HEADER: "x-up-limit",
    LIMIT_REQUEST_REMAINING_HEADER: "x-up-left",
    LIMIT_REQUEST_RESET_HEADER: "x-up-wait",
  };
  [gateway, shadow] = await Promise.all([
    startHostedGateway(stage, { policy, headgateEnvs: [env], envoy }),
    startHostedGateway(stage, { policy, headgateEnvs: [{ SHADOW_MODE: "true" }], envoy }),
  ]);
});

/** The statuses of the same request, sent so many times. */
async function statuses(
  times: number,
  values: Readonly<Record<string, string>>,
  through = gateway,
): Promise<readonly number[]> {
  const found: number[] = [];
  for (let count = 0; count < times; count += 1) found.push((await through.send(values)).status);
  return found;
}

describe("rules of envoyproxy/ratelimit behind Envoy", () => {
  it("are replaced by the rule that names them, in requests that meet both", async () => {
    const partner = { user: "replaced", partner: "replaced" };
    expect(await statuses(4, partner)).toEqual([200, 200, 200, 429]);
    // The usual limit was not charged by any of them.
    expect(await statuses(2, { user: "replaced" })).toEqual([200, 429]);
  });

  it("of quota_mode refuse when both models are used up, and not before", async () => {
    expect(await statuses(3, { models: "any" })).toEqual([200, 200, 429]);
  });

  it("count callers' values where detailed_metric asks for it", async () => {
    expect(await statuses(3, { tenant: "acme" })).toEqual([200, 200, 429]);
    const all = await statistics(gateway.headgates[0]);
    const path = "ratelimit.service.rate_limit.edge.tenant_acme";
    expect([all.get(`${path}.within_limit`), all.get(`${path}.over_limit`)]).toEqual([2, 1]);
    const labels = { path: "tenant_acme", outcome: "over" };
    expect(await gateway.headgates[0].metric("headgate_detailed_hits_total", labels)).toBe(1);
  });

  it("refuse nobody with SHADOW_MODE, which counts who would have been refused", async () => {
    const values = { user: "shadow" };
    expect(await statuses(3, values, shadow)).toEqual([200, 200, 200]);
    expect(rateLimitHeaders(await shadow.send(values))).toMatchObject({ isRateLimited: false });
    const [headgate] = shadow.headgates;
    expect(await headgate.metric("headgate_shadowed_requests_total")).toBe(3);
  });

  it("charge after the response what a filter wrote down, into debt", async () => {
    const values = { tokens: "costs-160" };
    expect((await gateway.send(values)).status).toBe(200);
    const refused = await waitFor("the debt is charged", async () => {
      const answer = await gateway.send(values);
      return answer.status === 429 ? answer : undefined;
    });
    // 160 of 100, one a second: the debt of 60 is paid in a minute.
    const waitSeconds = rateLimitHeaders(refused).retryAfterSeconds ?? 0;
    expect(waitSeconds).toBeGreaterThan(50);
    expect(waitSeconds).toBeLessThanOrEqual(100);
  });
});

describe("windows behind Envoy", () => {
  it.each([
    { key: "window", untilEdge: untilNextDaySeconds },
    { key: "calendar", untilEdge: untilNextMonthSeconds },
  ])("admit again at the next edge, and say when that is: $key", async ({ key, untilEdge }) => {
    const values = { [key]: "edge" };
    expect(await statuses(1, values)).toEqual([200]);
    const refused = await gateway.send(values);
    const { retryAfterSeconds = 0, remaining } = rateLimitHeaders(refused);
    expect([refused.status, remaining]).toEqual([429, 0]);
    expect(Math.abs(retryAfterSeconds - untilEdge())).toBeLessThan(toleranceSeconds);
  });
});

/** Time that may pass between two looks at the clock on a busy machine. */
const toleranceSeconds = 10;

function untilNextDaySeconds(): number {
  return 86_400 - ((Date.now() / 1_000) % 86_400);
}

function untilNextMonthSeconds(): number {
  const now = new Date();
  return (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1_000;
}

describe("what a caller and later filters are told through Envoy", () => {
  function header({ headers }: HttpAnswer, name: string): string | undefined {
    return headers[name]?.toString();
  }

  it("is in the three headers that the process names", async () => {
    const [passed, refused] = [
      await gateway.send({ user: "told" }),
      await gateway.send({ user: "told" }),
    ];
    expect([passed.status, refused.status]).toEqual([200, 429]);
    for (const answer of [passed, refused]) {
      expect(header(answer, "x-shop-limit")).toBe("1");
      expect(header(answer, "x-shop-left")).toBe("0");
      expect(Number(header(answer, "x-shop-wait"))).toBeGreaterThan(365 * 86_400 - 60);
    }
  });

  it("is in RateLimit and RateLimit-Policy where a rule asks for them", async () => {
    const answer = await gateway.send({ fields: "told" });
    expect(answer.status).toBe(200);
    expect(header(answer, "ratelimit-policy")).toContain('"yearly";q=1;w=31536000');
    expect(header(answer, "ratelimit")).toMatch(/"yearly";r=0;t=\d+/);
    expect(header(answer, "x-shop-limit")).toBeUndefined();
  });

  it("is in retry-after of a refusal, once, also where Envoy would say it itself", async () => {
    const values = { fields: "waits" };
    expect((await gateway.send(values)).status).toBe(200);
    const refused = await gateway.send(values);
    expect(refused.status).toBe(429);
    const names = refused.rawHeaders.filter((_, i) => i % 2 === 0);
    expect(names.filter((name) => name === "retry-after")).toHaveLength(1);
    expect(header(refused, "retry-after")).toMatch(/^\d+$/);
  });

  it("is in the headers of the request to the upstream that the process names", async () => {
    const answer = await gateway.send({ tenant: "upstream" });
    const names = ["x-seen-limit", "x-seen-left", "x-seen-wait"];
    const seen = names.map((name) => header(answer, name));
    // One hit of two a year drains in half of one.
    expect([answer.status, ...seen]).toEqual([200, "2", "1", "15768000"]);
  });

  it("is in the body of a refusal where a rule asks for one", async () => {
    expect((await gateway.send({ problem: "told" })).status).toBe(200);
    const refused = await gateway.send({ problem: "told" });
    expect(header(refused, "content-type")).toBe("application/problem+json");
    expect(JSON.parse(refused.body)).toMatchObject({
      status: 429,
      title: "Too Many Requests",
      detail: expect.stringContaining('"trial"'),
      "retry-after": rateLimitHeaders(refused).retryAfterSeconds,
    });
  });

  it("is in dynamic metadata, which a later filter reads", async () => {
    const answer = await gateway.send({ tenant: "metadata" });
    expect(header(answer, "x-owner")).toBe("edge");
    expect(header(answer, "x-domain")).toBe("edge");
    expect(header(answer, "x-asked")).toContain("tenant=metadata");
  });
});
