import { writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { isMap, isSeq, parseDocument } from "yaml";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Requests after the death of which questions are counted; each asks twice. */
const requestCount = 1_000;

/** As a name has it that two replicas answer to: the same host again, at another port. */
function withReplica(text: string, { at, port }: { readonly at: number; readonly port: number }) {
  const document = parseDocument(text);
  const clusters = document.getIn(["static_resources", "clusters"]);
  if (!isSeq(clusters)) throw new Error("no clusters");
  const hosts = ["load_assignment", "endpoints", 0, "lb_endpoints"];
  const portOf = [...hosts, 0, "endpoint", "address", "socket_address", "port_value"];
  for (const cluster of clusters.items) {
    if (!isMap(cluster) || cluster.getIn(portOf) !== at) continue;
    cluster.addIn(hosts, {
      endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } },
    });
  }
  return document.toString();
}

const slow = { timeout: 180_000 };

it("asks the other Headgate when one of two dies, but for a few calls", slow, async () => {
  const upstream = await startUpstream(stage);
  const [one, two] = await Promise.all([
    HostedHeadgate.prepare(stage, { policy: "" }),
    HeadgateProcess.prepare(stage, { policy: "" }),
  ]);
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    proxies: `headgate: {address: 127.0.0.1, port: ${one.grpcPort}, rateLimitTimeout: 1s}`,
    more: `
rateLimits:
  - domain: edge
    descriptors: [{key: kind, rate_limit: {unit: hour, requests_per_unit: 1000000}}]
`,
    services: `
- name: orders
  upstream: {address: 127.0.0.1, port: ${upstream.port}}
  rateLimit: {domain: edge, descriptors: [[{value: all, as: kind}]]}
  admission: {maxInFlight: 1000}
`,
    edit: (text) => withReplica(text, { at: one.grpcPort, port: two.grpcPort }),
  });
  await Promise.all([one, two].map(({ policyPath }) => writeFile(policyPath, policy)));
  await Promise.all([one.restart(), two.restart()]);
  await waitFor("both are healthy", async () => {
    return (await envoy.stat("cluster.headgate.membership_healthy")) === 2;
  });
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  const call = async () => String((await http.send({ port: envoy.port })).status);
  const traffic = Traffic.start(stage, { callersCount: 8, call });
  await waitFor("both decide", async () => {
    const counts = [one, two].map((each) => each.metric("headgate_requests_total"));
    return (await Promise.all(counts)).every((count) => count > 100);
  });
  const unaskedCount = async (): Promise<number> => {
    const names = [
      "cluster.orders.ratelimit.headgate.failure_mode_allowed",
      "http.ingress.ext_proc.headgate.failure_mode_allowed",
    ];
    const counts = await Promise.all(names.map((name) => envoy.stat(name)));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  const before = { total: traffic.total, unasked: await unaskedCount() };
  await two.process.kill();
  await waitFor("requests came", () => traffic.total >= before.total + requestCount, {
    withinMs: 120_000,
  });
  const asked = 2 * (traffic.total - before.total);
  const unasked = (await unaskedCount()) - before.unasked;
  const { total, byOutcome } = await traffic.stop();
  process.stdout.write(`passed unasked: ${unasked} of ${asked} questions\n`);
  expect(byOutcome).toEqual({ 200: total });
  // Those in flight when it died, and three for each of Envoy's workers; it was three of four.
  expect(unasked / asked).toBeLessThan(0.02);
});
