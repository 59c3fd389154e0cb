import { writeFile } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import type { Envoy } from "../support/envoy.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const limits = `
    rateLimits:
      - domain: shop
        descriptors:
          - key: user
            rate_limit: {unit: hour, requests_per_unit: 1, over: {delay: {max: 1s}}}
          - key: user
            value: ready
            rate_limit: {unit: second, requests_per_unit: 1000}
          - key: user
            value: paced
            rate_limit: {unit: second, requests_per_unit: 10, over: {delay: {max: 1s}}}
          - key: user
            value: patient
            rate_limit: {period: 4s, requests_per_unit: 1, over: {delay: {max: 5s}}}
          - key: user
            value: leaver
            rate_limit: {unit: minute, requests_per_unit: 1, over: {delay: {max: 1m}}}
`;

/** How long Envoy waits without being told. */
const timeoutSeconds = 3;

const stage = useStage("file");
let upstream: ScriptedUpstream;
let headgate: HostedHeadgate;
let envoy: Envoy;
let http: HttpClient;

beforeAll(async () => {
  http = new HttpClient();
  stage.atEnd(() => http.close());
  upstream = await startScriptedUpstream(stage);
  headgate = await HostedHeadgate.prepare(stage, { policy: "" });
  const generated = await startGeneratedEnvoy(stage, {
    more: limits,
    services: `
      - name: orders
        upstream: {address: 127.0.0.1, port: ${upstream.port}}
        admission: {}
        rateLimit: {domain: shop, inExtProc: true, descriptors: [[{header: x-user, as: user}]]}
    `,
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}}`,
    // On a busy machine Envoy would give up on answers that come at once.
    edit: (text) =>
      text.replaceAll(/\bmessage_timeout: [\d.]+s/g, `message_timeout: ${timeoutSeconds}s`),
  });
  envoy = generated.envoy;
  await writeFile(headgate.policyPath, generated.policy);
  await headgate.restart();
  const asked = { rule: "user_ready", outcome: "ok" };
  await waitFor("Envoy asks", async () => {
    await send("ready");
    return (await headgate.metric("headgate_decisions_total", asked)) > 0;
  });
});

function send(user: string) {
  return http.send({ port: envoy.port, headers: { "x-user": user } });
}

/** What Headgate has counted of a rule. */
function decisions(rule: string, outcome: string): Promise<number> {
  return headgate.metric("headgate_decisions_total", { rule, outcome });
}

describe("a limit that delays, behind a generated Envoy", () => {
  it("spreads a burst of twice what fits at once over a second, and refuses none", async () => {
    const before = upstream.arrivalsMs.length;
    const answers = await Promise.all(Array.from({ length: 20 }, () => send("paced")));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const arrivals = upstream.arrivalsMs.slice(before);
    expect(arrivals).toHaveLength(20);
    // Ten fit at once, and the others take a tenth of a second each, on any machine.
    const sentMs = Math.min(...answers.map((answer) => answer.sentMs));
    expect(Math.max(...arrivals) - sentMs).toBeGreaterThanOrEqual(999);
    const delayed = await decisions("user_paced", "delayed");
    expect(delayed).toBeGreaterThan(0);
    expect(delayed + (await decisions("user_paced", "ok"))).toBe(20);
    const histogram = "headgate_admission_rate_limit_delay_seconds";
    expect(await headgate.metric(`${histogram}_count`, { service: "orders" })).toBe(delayed);
  });

  it("makes Envoy wait for longer than its own timeout", async () => {
    const before = upstream.arrivalsMs.length;
    const first = await send("patient");
    expect((await send("patient")).status).toBe(200);
    const arrivedMs = upstream.arrivalsMs.at(-1) ?? 0;
    expect(arrivedMs - first.sentMs).toBeGreaterThanOrEqual(3_999);
    expect(upstream.arrivalsMs.length - before).toBe(2);
    expect(await envoy.stat("http.ingress.ext_proc.headgate.message_timeouts")).toBe(0);
  });

  it("refuses what would be held for too long", async () => {
    expect((await send("stranger")).status).toBe(200);
    const refused = await send("stranger");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(3_000);
  });

  it("lets go of a request whose caller leaves", async () => {
    expect((await send("leaver")).status).toBe(200);
    const impatient = new HttpClient();
    const left = expect(impatient.send({ port: envoy.port, headers: { "x-user": "leaver" } }));
    const held = (): Promise<number> => headgate.metric("headgate_admission_delayed_requests");
    await waitFor("it is held", async () => (await held()) === 1);
    impatient.close();
    await left.rejects.toThrow();
    await waitFor("it is let go of", async () => (await held()) === 0);
  });
});
