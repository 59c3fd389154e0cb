import { writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
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
            rate_limit:
              {name: pace, unit: day, requests_per_unit: 4, warnAt: 0.75,
               over: {annotate: {headers: {x-over: pace}}}}
          - key: user
            value: ready
            rate_limit: {unit: second, requests_per_unit: 1000}
          - key: user
            value: routed
            rate_limit:
              {unit: day, requests_per_unit: 1, over: {fallback: {header: {x-tier: cheap}}}}
`;

const stage = useStage("file");
let upstream: ScriptedUpstream;
let headgate: HostedHeadgate;
let envoy: Envoy;
let http: HttpClient;
let seen: IncomingHttpHeaders = {};

beforeAll(async () => {
  http = new HttpClient();
  stage.atEnd(() => http.close());
  upstream = await startScriptedUpstream(stage);
  upstream.answer = (_, { headers }) => {
    seen = headers;
    return { status: 200 };
  };
  headgate = await HostedHeadgate.prepare(stage, { policy: "" });
  const place = `upstream: {address: 127.0.0.1, port: ${upstream.port}}`;
  const descriptors = "descriptors: [[{header: x-user, as: user}]]";
  const generated = await startGeneratedEnvoy(stage, {
    more: limits,
    services: `
      - name: asked-by-headgate
        hosts: [headgate.example]
        ${place}
        admission: {}
        rateLimit: {domain: shop, inExtProc: true, ${descriptors}}
      - name: asked-by-envoy
        hosts: [envoy.example]
        ${place}
        rateLimit: {domain: shop, ${descriptors}}
    `,
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}}`,
    // On a busy machine Envoy would give up on answers that come at once.
    edit: (text) =>
      text
        .replaceAll(/\bmessage_timeout: [\d.]+s/g, "message_timeout: 3s")
        .replaceAll("0.02s", "3s"),
  });
  envoy = generated.envoy;
  await writeFile(headgate.policyPath, generated.policy);
  await headgate.restart();
  const asked = { rule: "user_ready", outcome: "ok" };
  await waitFor("Envoy asks in both ways", async () => {
    await send("headgate.example", "ready");
    await send("envoy.example", "ready");
    return (await headgate.metric("headgate_decisions_total", asked)) > 1;
  });
});

/** What the upstream sees of a request. */
async function send(host: string, user: string, more: Readonly<Record<string, string>> = {}) {
  seen = {};
  const headers = { host, "x-user": user, ...more };
  const { status } = await http.send({ port: envoy.port, headers });
  expect(status).toBe(200);
  return seen;
}

const warning = "x-headgate-limit-warning";

describe.each(["headgate.example", "envoy.example"])("a limit of %s that annotates", (host) => {
  it("lets all pass, warns near the limit, and tells the upstream who is over it", async () => {
    const marks: (string | undefined)[][] = [];
    for (let i = 0; i < 6; i += 1) {
      const headers = await send(host, `caller-of-${host}`);
      marks.push([headers[warning], headers["x-over"]].map((value) => value?.toString()));
    }
    expect(marks).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      ["pace", undefined],
      ["pace", undefined],
      ["pace", "pace"],
      ["pace", "pace"],
    ]);
  });
});

describe("what callers send under the names of annotations", () => {
  it("does not reach a service whose limits Headgate asks for itself", async () => {
    const lies = { "x-over": "no", [warning]: "no", "x-tier": "gold", "x-other": "kept" };
    const headers = await send("headgate.example", "liar", lies);
    expect(headers["x-other"]).toBe("kept");
    for (const name of ["x-over", warning, "x-tier"]) expect(headers).not.toHaveProperty(name);
  });

  it("is replaced by what the limit says", async () => {
    expect((await send("headgate.example", "routed"))["x-tier"]).toBeUndefined();
    const lies = { "x-tier": "gold" };
    expect((await send("headgate.example", "routed", lies))["x-tier"]).toBe("cheap");
  });
});
