import { beforeAll, describe, expect, it } from "vitest";
import { ConditionCompiler } from "../../src/policy/cel/cel.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { readQuotaBucket } from "../../src/policy/quotas/quota-bucket.js";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { type QuotaServer, startQuotaServer } from "../support/quota-server.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("file");

type Send = (path: string, headers?: Readonly<Record<string, string>>) => Promise<HttpAnswer>;

/** An edge before two services, with these quotas. */
async function startEdge(
  quotas: string,
  controlPort: number,
): Promise<{ readonly policy: string; readonly send: Send }> {
  const upstream = await startScriptedUpstream(stage);
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    services: `
      - {name: orders, hosts: [orders.test], upstream: {address: 127.0.0.1, port: ${upstream.port}}}
      - {name: search, hosts: [search.test], upstream: {address: 127.0.0.1, port: ${upstream.port}}}
    `,
    proxies: `headgate: {address: 127.0.0.1, controlPort: ${controlPort}}`,
    more: `
      rateLimits:
        - domain: shop
          descriptors: [{key: tenant, rate_limit: {unit: second, requests_per_unit: 100}}]
        - {domain: other}
      quotas:
${quotas}
    `,
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send: Send = (path, headers = {}) => {
    return http.send({ port: envoy.port, path, headers: { host: "orders.test", ...headers } });
  };
  return { policy, send };
}

/** Quotas of several parts, one with a refusal of its own, and one of the usual kind. */
const bucketQuotas = `
        - name: tenants
          domain: shop
          bucket: [{header: x-tenant, as: tenant}]
          classes: {header: x-plan, weights: {gold: 3, "free of charge": 1}}
        - name: pages
          domain: other
          services: [search]
          match: [{name: x-kind, prefix: bul}]
          bucket:
            - remote_address
            - {query: page, as: page, default: none}
            - {header: ":path", as: path}
            - {header: x-app, as: app, default: unknown}
            - {value: edge, as: where}
          rate: {hits: 10, period: 1s}
        - name: shut
          domain: other
          bucket: [{header: x-a, as: a}]
          rate: {hits: 10, period: 1s}
          beforeAssignment: deny
          deny:
            status: 503
            retryAfter: 7s
            body: '{"error":"über"}'
            headers: {content-type: application/json, x-refused-by: quota}
            grpcStatus: 14
        - name: usual
          domain: other
          bucket: [{header: x-customer, as: customer}]
          rate: {hits: 10, period: 1s}
`;

const conditions: readonly string[] = [
  'request.path == "/a?b=c"',
  'request.url_path == "/a" && request.query == "b=c"',
  'request.path.startsWith("/a") || request.path.endsWith("z")',
  'request.method in ["GET", "PUT"]',
  'request.headers["x-plan"] == "gold"',
  'request.headers.plan == "gold"',
  '"x-plan" in request.headers',
  "has(request.headers.plan)",
  '!("x-plan" in request.headers)',
  'request.headers["x-plan"] != "gold"',
  'request.headers["x-plan"] == "gold" || request.method == "GET"',
  '"x-plan" in request.headers ? request.headers["x-plan"].contains("ol") : true',
  "size(request.path) > 5",
  "request.path.size() <= 2",
  '["/a", "/z"].exists(p, request.path.startsWith(p))',
  '["o", "l"].all(p, request.headers["x-plan"].contains(p))',
  'request.host == "orders.test" && request.scheme == "http"',
  'source.address.startsWith("127.0.0.1:")',
  'request.protocol == "HTTP/1.1"',
  'request.method > "F" && request.method < "H"',
];

/** One quota for each condition; its bucket says which, and by what request. */
const conditionQuotas = conditions
  .map((when, index) =>
    JSON.stringify({
      name: `c${index}`,
      domain: "other",
      when,
      bucket: [
        { header: "x-number", as: "number" },
        { value: String(index), as: "condition" },
      ],
      rate: { hits: 1, period: "1s" },
    }),
  )
  .map((line) => `        - ${line}\n`)
  .join("");

/** One Envoy with all of them, and a server that a test writes: no request is for two tests. */
let server: QuotaServer;
let policy: string;
let send: Send;

beforeAll(async () => {
  server = await startQuotaServer(stage);
  ({ policy, send } = await startEdge(bucketQuotas + conditionQuotas, server.port));
});

describe("a generated quota filter", () => {
  it("asks for each bucket by the id that the policy reads", async () => {
    const requests: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
      ["/", {}],
      ["/", { "x-tenant": "" }],
      ["/healthz", { "x-tenant": "a" }],
      ["/", { "x-tenant": "a" }],
      ["/", { "x-tenant": "a", "x-plan": "gold" }],
      ["/", { "x-tenant": "b c", "x-plan": "free of charge" }],
      ["/", { "x-tenant": "b c", "x-plan": "goldish" }],
      ["/a", { "x-kind": "bulk" }],
      ["/a", { host: "search.test" }],
      ["/a", { host: "search.test:8080", "x-kind": "bulk" }],
      ["/a?page=7", { host: "search.test", "x-kind": "bulk", "x-app": "web", "x-tenant": "z" }],
    ];
    for (const [path, headers] of requests) {
      expect((await send(path, headers)).status, path).toBe(200);
    }
    const fixed = { quota: "pages", remote_address: "127.0.0.1", where: "edge" };
    const expected = [
      { quota: "tenants", tenant: "a" },
      { quota: "tenants", tenant: "a", class: "gold" },
      { quota: "tenants", tenant: "b c", class: "free of charge" },
      { quota: "tenants", tenant: "b c" },
      { ...fixed, path: "/a", page: "none", app: "unknown" },
      { quota: "tenants", tenant: "z" },
      { ...fixed, path: "/a?page=7", page: "7", app: "web" },
    ];
    const { reports } = server;
    const passed = () => reports.filter(({ allowedCount }) => allowedCount > 0);
    await waitFor("all buckets are reported", () => passed().length >= expected.length);
    expect(passed()).toHaveLength(expected.length);
    expect(passed().map(({ id }) => id)).toEqual(expect.arrayContaining(expected));
    const parsed = parsePolicy([{ file: "policy.yaml", text: policy }]);
    const quotas = parsed.kind === "policy" ? parsed.quotas : [];
    const read = reports.map(({ id, domain }) => {
      const quota = quotas.find((one) => one.name === id["quota"] && one.domain === domain);
      return quota && readQuotaBucket(quota, id).kind;
    });
    expect(new Set(read)).toEqual(new Set(["bucket"]));
  });

  it("shares one stream among the quotas of a domain, and says from where it comes", async () => {
    await send("/", { "x-tenant": "shared", "x-customer": "shared" });
    await send("/", { host: "search.test", "x-kind": "bulk", "x-app": "shared" });
    await waitFor("a bucket of each quota is reported", () => {
      const own = server.reports.filter(({ id }) => Object.values(id).includes("shared"));
      return new Set(own.map(({ id }) => id["quota"])).size === 3;
    });
    expect(server.streams).toHaveLength(2);
    expect(server.streams[0]?.["x-forwarded-for"]).toMatch(/^[0-9a-f.:]+$/);
  });

  it("refuses as the policy says, before an assignment and by one", async () => {
    const refused = await send("/", { "x-a": "1" });
    expect(refused.status).toBe(503);
    expect(refused.body).toBe('{"error":"über"}');
    expect(refused.headers).toMatchObject({
      "content-type": "application/json",
      "retry-after": "7",
      "x-refused-by": "quota",
      "x-envoy-ratelimited": "true",
    });
    const grpc = await send("/", { "x-a": "1", "content-type": "application/grpc" });
    expect(grpc.headers).toMatchObject({
      "content-type": "application/grpc",
      "grpc-status": "14",
      "retry-after": "7",
    });
    server.answer = ({ id }) => {
      if (id["customer"] !== "refused") return undefined;
      const rateLimitStrategy = { strategy: { case: "blanketRule", value: denyAll } } as const;
      const value = { assignmentTimeToLive: { seconds: 30n }, rateLimitStrategy };
      const bucketAction = { case: "quotaAssignmentAction", value } as const;
      return [{ bucketId: { bucket: { ...id } }, bucketAction }];
    };
    const headers = { "x-customer": "refused" };
    expect((await send("/", headers)).status).toBe(200);
    const usual = await waitFor("the assignment is there", async () => {
      const answer = await send("/", headers);
      return answer.status === 200 ? undefined : answer;
    });
    expect(usual.status).toBe(429);
    expect(usual.headers["retry-after"]).toBe("1");
    const call = await send("/", { ...headers, "content-type": "application/grpc" });
    expect(call.headers["grpc-status"]).toBe("8");
  });
});

/** `envoy.type.v3.RateLimitStrategy.BlanketRule`. */
const denyAll = 1;

describe("a generated Envoy and a Headgate", () => {
  it("hold the rate of a quota, tell callers so, and share it with RLS calls", async () => {
    const controlPort = await freePort();
    const edge = await startEdge(
      `
        - name: reports
          domain: other
          services: [orders]
          when: request.url_path.startsWith("/reports")
          bucket: [{header: x-user, as: user}]
          rate: {hits: 20, period: 1s, burst: 20}
    `,
      controlPort,
    );
    const env = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` };
    const headgate = await HostedHeadgate.start(stage, { policy: edge.policy, env });
    const askOften = (): Promise<readonly HttpAnswer[]> =>
      Promise.all(Array.from({ length: 20 }, () => edge.send("/reports", { "x-user": "a" })));
    await waitFor("an assignment is active", async () =>
      (await askOften()).some(({ status }) => status === 429),
    );
    // What passes from now on is what is assigned: 20 a second, and what waits in the bucket.
    const startMs = performance.now();
    let [askedCount, passedCount] = [0, 0];
    while (performance.now() < startMs + 3_000) {
      const answers = await askOften();
      askedCount += answers.length;
      passedCount += answers.filter(({ status }) => status === 200).length;
      expect((await edge.send("/", { "x-user": "a" })).status).toBe(200);
    }
    const most = 20 * ((performance.now() - startMs) / 1_000 + 0.75);
    expect(askedCount).toBeGreaterThan(most);
    expect(passedCount).toBeGreaterThan(20);
    expect(passedCount).toBeLessThan(most);
    await waitFor("what has passed is charged", async () => {
      await askOften();
      return (await headgate.metric("headgate_quota_hits_total", { outcome: "charged" })) > 20;
    });
    // Alone, as many calls at once as the burst has would all be let in.
    const descriptors = [{ entries: [{ key: "user", value: "a" }] }];
    const call = () => headgate.postJson({ domain: "other", descriptors });
    const calls = Promise.all(Array.from({ length: 20 }, call));
    const [answers] = await Promise.all([calls, askOften()]);
    expect(answers.map(({ status }) => status)).toContain(429);
  });
});

describe("a generated quota's condition", () => {
  it("holds in Envoy where it holds in Headgate", async () => {
    const requests: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
      ["/a?b=c", {}],
      ["/a", { "x-plan": "gold" }],
      ["/long/z", { "x-plan": "free", plan: "gold" }],
      ["/", { "x-plan": "goldish", plan: "free" }],
    ];
    const compiler = new ConditionCompiler();
    const expected = new Set<string>();
    for (const [number, [path, headers]] of requests.entries()) {
      expect((await send(path, { ...headers, "x-number": String(number) })).status).toBe(200);
      const facts = {
        headers: new Map([
          ...Object.entries(headers),
          [":path", path],
          [":method", "GET"],
          [":scheme", "http"],
          [":authority", "orders.test"],
        ]),
        attributes: new Map([
          ["source.address", "127.0.0.1:1234"],
          ["request.protocol", "HTTP/1.1"],
        ]),
      };
      for (const [index, when] of conditions.entries()) {
        const compiled = compiler.compile(when);
        const holds = compiled.kind === "condition" && compiled.condition.holds(facts);
        if (holds) expected.add(`${when} of ${path}`);
        else expect(compiled.kind, conditions[index]).toBe("condition");
      }
    }
    const seen = (): ReadonlySet<string> =>
      new Set(
        server.reports
          .filter(({ id }) => "condition" in id)
          .map(({ id }) => {
            const [path = ""] = requests[Number(id["number"])] ?? [];
            return `${conditions[Number(id["condition"])]} of ${path}`;
          }),
      );
    await waitFor("all are reported", () => seen().size >= expected.size);
    expect([...seen()].sort()).toEqual([...expected].sort());
    expect(expected.size).toBeGreaterThan(conditions.length);
  });
});
