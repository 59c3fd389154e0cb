import { writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { AdmissionRig } from "../support/admission.js";
import type { Envoy } from "../support/envoy.js";
import { freePort } from "../support/free-port.js";
import { rateLimitHeaders } from "../support/gateway.js";
import { policyOf } from "../support/generated.js";
import { type GeneratedWish, startGeneratedEnvoy } from "../support/generated-envoy.js";
import {
  type HeadgateOptions,
  HeadgateProcess,
  type RunningHeadgate,
} from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, type HttpAsk, HttpClient } from "../support/http-client.js";
import { startRecordingProcessor } from "../support/recording-processor.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { trueTimes } from "../support/true-times.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

type Send = (ask?: Omit<HttpAsk, "port">) => Promise<HttpAnswer>;

function client({ port }: Envoy): Send {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return (ask = {}) => http.send({ port, ...ask });
}

type Wish = Pick<GeneratedWish, "services" | "more" | "proxies"> & {
  /** Default false, as in policies. */
  readonly failureModeDeny?: boolean;
};

/** A generated proxy of one policy, and a Headgate of the same. */
function startBoth(wish: Wish) {
  return startRow(wish, (options) => HostedHeadgate.prepare(stage, options));
}

/** The same with a Headgate that can be killed. */
function startBothToKill(wish: Wish) {
  return startRow(wish, (options) => HeadgateProcess.prepare(stage, options));
}

async function startRow<Headgate extends RunningHeadgate & { restart(): Promise<void> }>(
  { proxies = "", failureModeDeny = false, ...wish }: Wish,
  prepare: (options: HeadgateOptions) => Promise<Headgate>,
) {
  const controlPort = await freePort();
  const shorter = trueTimes ? {} : { HEADGATE_LAYER_TTL_MS: "6000" };
  const env = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}`, ...shorter };
  const headgate = await prepare({ policy: "", env });
  const place = `address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: ${controlPort}`;
  const waits = `rateLimitTimeout: 1s, failureModeDeny: ${failureModeDeny}`;
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    ...wish,
    proxies: `headgate: {${place}, ${waits}}\n${proxies}`,
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  return { headgate, envoy, send: client(envoy) };
}

/** Each descriptor stands for one kind of part, and only for requests with a header of its name. */
const kinds: readonly {
  readonly name: string;
  /** The part, as a policy has it. */
  readonly part: string;
  /** What Envoy is to make of it. */
  readonly entry: string;
  readonly path?: string;
}[] = [
  { name: "address", part: "remote_address", entry: 'key: remote_address, value: "127.0.0.1"' },
  {
    name: "mask",
    part: "{maskedRemoteAddress: {v4: 8}}",
    entry: 'key: masked_remote_address, value: "127.0.0.0/8"',
  },
  { name: "source", part: "source_cluster", entry: "key: source_cluster, value: edge" },
  {
    name: "destination",
    part: "destination_cluster",
    entry: "key: destination_cluster, value: orders",
  },
  { name: "header", part: "{header: x-name, as: user}", entry: "key: user, value: ann" },
  {
    name: "query",
    part: "{query: tenant, as: tenant}",
    entry: "key: tenant, value: blue",
    path: "/?tenant=blue",
  },
  {
    name: "match",
    part: "{headerMatch: [{name: x-vip, present: true}], expectMatch: false, value: low, as: plan}",
    entry: "key: plan, value: low",
  },
  {
    name: "question",
    part: "{queryMatch: [{name: size, prefix: '10'}], value: large, as: export}",
    entry: "key: export, value: large",
    path: "/?size=1000",
  },
  { name: "fixed", part: "{value: orders, as: all}", entry: "key: all, value: orders" },
  {
    name: "metadata",
    part: "{metadata: {source: route, namespace: shop, path: [team], default: nobody}, as: team}",
    entry: "key: team, value: nobody",
  },
  {
    name: "expression",
    part: "{cel: request.method, as: method}",
    entry: "key: method, value: GET",
  },
];

describe("a generated rate-limit filter", () => {
  it("makes every kind of descriptor as limits name it", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { send } = await startBoth({
      more: `
        rateLimits:
          - domain: shop
            descriptors:
${kinds.map(({ name, entry }) => limitOf(name, entry)).join("\n")}
      `,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          rateLimit:
            domain: shop
            descriptors:
${kinds.map(({ name, part }) => descriptorOf(name, part)).join("\n")}
      `,
    });
    await waitFor("Headgate is asked", async () => {
      const answer = await send({ headers: { "x-by-fixed": "first" } });
      return rateLimitHeaders(answer).limit !== undefined;
    });
    for (const { name, path = "/" } of kinds) {
      const headers = { [`x-by-${name}`]: "test", "x-name": "ann" };
      const answers = [
        await send({ path, headers }),
        await send({ path, headers }),
        await send({ path, headers }),
      ];
      expect([name, ...answers.map(({ status }) => status)]).toEqual([name, 200, 200, 429]);
      const refused = answers.at(-1);
      expect(refused?.headers["x-ratelimit-limit"]).toContain(`name="by-${name}"`);
      expect(Number(refused?.headers["retry-after"])).toBeGreaterThan(60);
    }
  });

  it("charges what responses cost, once they are through, and gives back", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = () => ({ status: 200, headers: { "x-tokens-used": "7" } });
    const { send } = await startBoth({
      more: `
        rateLimits:
          - domain: shop
            descriptors:
              - {key: user, rate_limit: {name: pairs, unit: hour, requests_per_unit: 5}}
              - key: model
                rate_limit: {name: tokens, unit: hour, requests_per_unit: 10, charge: settle}
              - {key: lease, rate_limit: {name: leases, unit: hour, requests_per_unit: 1}}
      `,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          rateLimit:
            domain: shop
            descriptors:
              - {entries: [{header: x-user, as: user}], hits: 2}
              - {entries: [{header: x-model, as: model}], hits: 0}
              - entries: [{header: x-model, as: model}]
                hits: {format: "%RESP(x-tokens-used)%"}
                when: streamDone
              - [{header: x-lease, as: lease}]
              - {entries: [{header: x-lease, as: lease}], refund: true, when: streamDone}
      `,
    });
    const statusOf = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      (await send({ headers })).status;
    await waitFor("Headgate is asked", async () => {
      const answer = await send({ headers: { "x-user": "first" } });
      return rateLimitHeaders(answer).limit !== undefined;
    });
    const ann = { "x-user": "ann" };
    expect([await statusOf(ann), await statusOf(ann), await statusOf(ann)]).toEqual([
      200, 200, 429,
    ]);
    // Each response costs 7 of 10: the first leaves room, the second ends in debt.
    const model = { "x-model": "large" };
    expect(await statusOf(model)).toBe(200);
    await waitFor("the debt is known", async () => (await statusOf(model)) === 429);
    const seen = upstream.arrivalsMs.length;
    expect([await statusOf(model), upstream.arrivalsMs.length]).toEqual([429, seen]);
    const lease = { "x-lease": "one" };
    expect(await statusOf(lease)).toBe(200);
    await waitFor("the hit is given back", async () => (await statusOf(lease)) === 200);
  });
});

function descriptorOf(name: string, part: string): string {
  return `              - [{header: x-by-${name}, as: by-${name}}, ${part}]`;
}

function limitOf(name: string, entry: string): string {
  const limit = `{name: by-${name}, unit: hour, requests_per_unit: 2}`;
  const inner = `{${entry}, rate_limit: ${limit}}`;
  return `              - {key: by-${name}, descriptors: [${inner}]}`;
}

describe("a generated local rate limit", () => {
  it("is silent while Headgate lives, and limits when it is dead", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { send, envoy, headgate } = await startBothToKill({
      more: `
        rateLimits:
          - domain: shop
            descriptors:
              - key: remote_address
                rate_limit: {name: fair, unit: second, requests_per_unit: 1000}
      `,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          rateLimit: {domain: shop, descriptors: [[remote_address]]}
          localRateLimit: {requests: 3, per: 10m, when: withoutHeadgate}
      `,
    });
    const key = "headgate.local_rate_limit.orders";
    await waitFor("the layer is there", async () => (await envoy.runtimeValue(key)) === "0", {
      withinMs: 20_000,
    });
    const limited = (): Promise<number> => envoy.stat("orders.http_local_rate_limit.enabled");
    const before = await limited();
    for (let count = 0; count < 10; count += 1) {
      const answer = await send();
      expect(answer.status).toBe(200);
      expect(rateLimitHeaders(answer).limit).toContain('name="fair"');
    }
    expect(await limited()).toBe(before);
    await headgate.process.kill();
    const refused = await waitFor(
      "the proxy limits by itself",
      async () => {
        const answer = await send();
        return answer.status === 429 ? answer : undefined;
      },
      { withinMs: 40_000, everyMs: 50 },
    );
    expect(rateLimitHeaders(refused).limit).toBe("3");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    await headgate.restart();
    await waitFor("Headgate decides again", async () => (await send()).status === 200, {
      withinMs: 30_000,
      everyMs: 50,
    });
  });
});

describe("a generated admission control filter", () => {
  it("leaves failures alone while Headgate lives, and refuses when it is dead", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = () => ({ status: 500 });
    const { send, envoy, headgate } = await startBothToKill({
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          outlierDetection: off
          admissionControl: {samplingWindow: 2s, minRequestsPerSecond: 1, when: withoutHeadgate}
      `,
    });
    const key = "headgate.admission_control.orders";
    await waitFor("the layer is there", async () => (await envoy.runtimeValue(key)) === "false", {
      withinMs: 20_000,
    });
    const rejected = (): Promise<number> =>
      envoy.stat("http.ingress.admission_control.rq_rejected");
    const before = await rejected();
    for (let count = 0; count < 100; count += 1) expect((await send()).status).toBe(500);
    expect(await rejected()).toBe(before);
    await headgate.process.kill();
    await waitFor("requests are refused", async () => (await send()).status === 503, {
      withinMs: 40_000,
      everyMs: 20,
    });
  });
});

describe("a generated ext_proc filter", () => {
  it("sends the headers and attributes that the policy looks at, and no others", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = () => ({ status: 200, headers: { "set-cookie": "a=b", "x-trace": "1" } });
    const processor = await startRecordingProcessor(stage);
    const { envoy, policy } = await startGeneratedEnvoy(stage, {
      proxies: `headgate: {address: 127.0.0.1, port: ${processor.port}}`,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          priority:
            from: {header: x-class, trust: {sources: [127.0.0.0/8]}}
            rules: [{when: 'request.headers["x-vip"] == "yes"', is: high}]
          admission:
            maxInFlight: 10
            maxInFlightPer: {per: route, max: 5}
            caller: {header: x-user}
      `,
    });
    const sent = { "x-user": "ann", "x-vip": "yes", "x-class": "low", "x-noise": "1" };
    const headers = {
      ...sent,
      authorization: "secret",
      cookie: "a=b",
      "content-type": "text/plain",
    };
    const send = client(envoy);
    const answer = await send({ headers });
    expect(answer.status).toBe(200);
    expect(answer.headers satisfies IncomingHttpHeaders).toHaveProperty("set-cookie");
    await waitFor("the response is told of", () => processor.exchanges[0]?.messages.length === 2);
    const [exchange] = processor.exchanges;
    expect(exchange?.service).toBe("orders");
    const { services } = policyOf([{ file: "policy.yaml", text: policy }]);
    const { admission } = new AdmissionRig(services);
    const [asked, answered] = exchange?.messages ?? [];
    const names = (message: typeof asked): ReadonlySet<string> => {
      const part = message?.request;
      if (part?.case !== "requestHeaders" && part?.case !== "responseHeaders") return new Set();
      return new Set(part.value.headers?.headers.map(({ key }) => key));
    };
    for (const name of ["x-user", "x-vip", "x-class", ":path", ":authority", "content-type"]) {
      expect([name, names(asked).has(name)]).toEqual([name, true]);
    }
    expect([...names(asked)].filter((name) => !admission.requestHeaderNames.has(name))).toEqual([]);
    expect(names(answered).has(":status")).toBe(true);
    const known = new Set([...admission.responseHeaderNames, ...admission.requestHeaderNames]);
    expect([...names(answered)].filter((name) => !known.has(name))).toEqual([]);
    const attributes = asked?.attributes["envoy.filters.http.ext_proc"] ?? {};
    expect(new Set(Object.keys(attributes))).toEqual(admission.attributeNames);
  });

  it("lets Headgate set what it sets, of requests and of refusals", async () => {
    const upstream = await startScriptedUpstream(stage);
    const seen: IncomingHttpHeaders[] = [];
    upstream.answer = (_index, { headers }) => {
      seen.push(headers);
      return { status: 200 };
    };
    const { send } = await startBoth({
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          priority:
            rules: [{when: 'request.path.startsWith("/reports")', is: low}]
          admission: {maxInFlight: 10, deadline: {header: x-deadline-ms}}
      `,
    });
    await waitFor("Headgate is asked", async () => {
      await send({ path: "/reports/1" });
      return seen.at(-1)?.["x-request-priority"] === "low";
    });
    await send({ headers: { "x-deadline-ms": "5000", "grpc-timeout": "9S" } });
    expect(Number(seen.at(-1)?.["x-deadline-ms"])).toBeLessThanOrEqual(4_990);
    expect(seen.at(-1)?.["grpc-timeout"]).toMatch(/^4\d+m$/);
    const count = seen.length;
    const refused = await send({ headers: { "x-deadline-ms": "3" } });
    expect([refused.status, seen.length]).toEqual([504, count]);
    expect(refused.headers["x-headgate-reason"]).toContain("remaining time");
    expect(refused.headers["content-type"]).toBe("application/problem+json");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  });

  it("refuses by no breaker what Headgate has let in or queues", async () => {
    const upstream = await startUpstream(stage, 20);
    // What Headgate does not answer in time, on a busy machine, is refused here. If it passed, it
    // would hold a place at the breaker without a permit, and for as long as it does, the breaker
    // would refuse one request after the other that has one.
    const { envoy, headgate, send } = await startBoth({
      proxies: "expected: 4",
      failureModeDeny: true,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          admission: {maxInFlight: 8, queue: {size: 40, maxWait: 10s}}
      `,
    });
    await waitFor("Headgate is asked", async () => {
      await send();
      return /headgate_admission_.*orders.* [1-9]/.test((await headgate.get("/metrics")).body);
    });
    const missed = (): Promise<number> =>
      envoy.stat("http.ingress.ext_proc.headgate.message_timeouts");
    const missedBefore = await missed();
    const clients = Array.from({ length: 16 }, async () => {
      const answers: HttpAnswer[] = [];
      for (let count = 0; count < 20; count += 1) answers.push(await send());
      return answers;
    });
    const answers = (await Promise.all(clients)).flat();
    expect(await envoy.stat("cluster.orders.upstream_rq_active_overflow")).toBe(0);
    expect(await envoy.stat("cluster.orders.upstream_rq_pending_overflow")).toBe(0);
    // Headgate says why it refuses, as it does when it is overloaded itself.
    const byEnvoy = answers.filter(
      ({ status, headers }) => status !== 200 && headers["x-headgate-reason"] === undefined,
    );
    expect(byEnvoy.length).toBe((await missed()) - missedBefore);
    expect(upstream.inWorkMost).toBe(8);
  });
});
