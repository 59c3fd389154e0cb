import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const [requestCount, limit] = [5, 2];

/** A generated Envoy before one service, and the lines of its log once so many requests came. */
async function logOf(admission: string) {
  const upstream = await startUpstream(stage);
  const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, rateLimitTimeout: 1s}`,
    services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          ${admission}
      `,
    more: `
        rateLimits:
          - domain: shop
            descriptors:
              - key: remote_address
                rate_limit: {name: pace, unit: hour, requests_per_unit: ${limit}}
      `,
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  for (let i = 0; i < requestCount; i += 1) await http.send({ port: envoy.port, path: "/cart" });
  const lines = await waitFor("all requests are logged", () => {
    const found = envoy.output.split("\n").filter((line) => line.startsWith("{"));
    return found.length >= requestCount ? found : undefined;
  });
  const reported = lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  return { reported, headgate, envoy };
}

/** Story: generated Envoys wrote no log, and `replay` had nothing to read. */
describe("the access log of a generated Envoy", () => {
  it("is read by `headgate replay`, and names the rule that refused a request", async () => {
    const { reported, headgate, envoy } = await logOf(
      "rateLimit: {domain: shop, inExtProc: false, descriptors: [[remote_address]]}",
    );
    const refused = reported.filter(({ rate_limit_rule }) => rate_limit_rule === "remote_address");
    expect(refused).toHaveLength(requestCount - limit);
    for (const line of refused) {
      expect(line).toMatchObject({ path: "/cart", response_code: 429, response_flags: "RL" });
    }
    const log = join(stage.folder, "access.log");
    await writeFile(log, envoy.output);
    const words = ["replay", "--policy", headgate.policyPath, "-o", "json", log];
    const { code, out } = await captureCli(words);
    expect(code).toBe(0);
    const counts = { callCount: requestCount, deniedCount: requestCount - limit };
    expect(JSON.parse(out)).toMatchObject(counts);
  });

  it("names the rule and the cause of what admission refused", async () => {
    const { reported } = await logOf(
      "rateLimit: {domain: shop, inExtProc: true, descriptors: [[remote_address]]}\n" +
        "          admission: {maxInFlight: 100}",
    );
    const refused = reported.filter(({ response_code }) => response_code === 429);
    expect(refused).toHaveLength(requestCount - limit);
    for (const line of refused) {
      const why = { admission_rule: "remote_address", admission_cause: "rateLimit" };
      expect(line).toMatchObject({ path: "/cart", ...why });
    }
    const passed = reported.filter(({ response_code }) => response_code === 200);
    for (const line of passed) expect(line).toMatchObject({ admission_cause: null });
  });
});
