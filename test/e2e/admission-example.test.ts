import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, type HttpAsk, HttpClient } from "../support/http-client.js";
import { requireProgram } from "../support/programs.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** The example's files as they lie there, with ports of this test. */
async function startExample() {
  const seen: IncomingHttpHeaders[] = [];
  const held: ServerResponse[] = [];
  let isHolding = true;
  const upstream = createServer((request, response) => {
    seen.push(request.headers);
    if (request.url === "/held" && isHolding) held.push(response);
    else response.end("served\n");
  });
  upstream.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  stage.atEnd(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const headgate = await HostedHeadgate.start(stage, {
    policy: { path: "envoy/admission/policy.yaml" },
  });
  const ports = { listener: await freePort(), admin: await freePort() };
  const text = readFileSync("envoy/admission/edge/envoy.yaml", "utf8")
    .replaceAll("port_value: 9901", `port_value: ${ports.admin}`)
    .replace("port_value: 9902", `port_value: ${await freePort()}`)
    .replace("port_value: 10000", `port_value: ${ports.listener}`)
    .replace("port_value: 10080", `port_value: ${(upstream.address() as AddressInfo).port}`)
    .replace("port_value: 8081", `port_value: ${headgate.grpcPort}`)
    // A busy machine may answer later than 200 ms, and then Envoy lets requests pass.
    .replace(/( message_timeout): 0\.2s/, "$1: 5s");
  const path = join(stage.folder, "envoy.yaml");
  await writeFile(path, text);
  const args = ["--config-path", path, "--concurrency", "1", "--use-dynamic-base-id"];
  stage.spawn({ name: "envoy", file: await requireProgram("envoy"), args });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const send = (ask: Omit<HttpAsk, "port"> = {}): Promise<HttpAnswer> =>
    http.send({ port: ports.listener, ...ask });
  await waitFor("Envoy asks Headgate", async () => {
    const { status } = await send({ path: "/checkout" });
    return status === 200 && seen.at(-1)?.["x-request-priority"] === "critical";
  });
  const release = (): void => {
    isHolding = false;
    for (const response of held) response.end("served\n");
  };
  return { send, seen, held, release, headgate };
}

describe("envoy/admission", () => {
  it("tells the service each request's class, and believes it from this machine", async () => {
    const { send, seen } = await startExample();
    const classOf = async (ask: Omit<HttpAsk, "port">): Promise<unknown> => {
      await send(ask);
      return seen.at(-1)?.["x-request-priority"];
    };
    expect(await classOf({ path: "/" })).toBe("normal");
    expect(await classOf({ path: "/reports/1" })).toBe("low");
    expect(await classOf({ path: "/", headers: { "x-request-priority": "high" } })).toBe("high");
    // Nobody is asked there, and so it stays as a trusted caller has it.
    expect(await classOf({ path: "/healthz", headers: { "x-request-priority": "high" } })).toBe(
      "high",
    );
  });

  it("passes on how much time is left, and refuses a request that has none", async () => {
    const { send, seen } = await startExample();
    await send({ headers: { "x-deadline-ms": "1000" } });
    const leftMs = Number(seen.at(-1)?.["x-deadline-ms"]);
    expect(leftMs).toBeGreaterThan(500);
    expect(leftMs).toBeLessThanOrEqual(990);
    const seenCount = seen.length;
    const refused = await send({ headers: { "x-deadline-ms": "3" } });
    expect(refused.status).toBe(504);
    expect(refused.headers["x-headgate-reason"]).toContain("time left");
    expect(seen).toHaveLength(seenCount);
  });

  it("lets in what the service can take, lets some wait, and refuses the rest", async () => {
    const { send, held, release, headgate } = await startExample();
    const answers = Array.from({ length: 60 }, () => send({ path: "/held" }));
    await waitFor("all places are taken", () => held.length >= 20);
    const late = await Promise.race(answers);
    expect(late.status).toBe(429);
    expect(Number(late.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(late.headers["content-type"]).toBe("application/problem+json");
    expect(JSON.parse(late.body)).toMatchObject({ status: 429 });
    release();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(20);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    await waitFor("all places are given back", async () => {
      const { body } = await headgate.get("/metrics");
      return /^headgate_admission_inflight\{[^}]*service="orders"[^}]*\} 0$/m.test(body);
    });
  });
});
