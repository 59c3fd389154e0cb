import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../src/core/base/grpc-status.js";
import { bucketsPerStreamMax } from "../../src/decide/quota/quota-sessions.js";
import { bucketIdBytesMax, bucketIdEntriesMax } from "../../src/rpc/control/quota-messages.js";
import { bucketReportsPerSecondMax } from "../../src/rpc/control/quota-stream.js";
import { startTestApp, type TestApp } from "../support/app.js";
import { QuotaClient, type SeenAction, usageMessage } from "../support/quota-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: 100}}
        - {key: free, rate_limit: {unlimited: true}}
        - {key: shut, rate_limit: {unit: second, requests_per_unit: 0}}
        - {key: tried, rate_limit: {unit: second, requests_per_unit: 5}, shadow_mode: true}
    - domain: other
      descriptors: [{key: tenant, rate_limit: {unit: second, requests_per_unit: 5}}]
  quotas:
    - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
    - {name: free, domain: edge, bucket: [{header: x-free, as: free}]}
    - {name: shut, domain: edge, bucket: [{header: x-shut, as: shut}]}
    - {name: tried, domain: edge, bucket: [{header: x-tried, as: tried}]}
`;

async function start(): Promise<TestApp & { readonly client: QuotaClient }> {
  const started = await startTestApp(stage, policy);
  const client = new QuotaClient(started.app.controlAddress?.port ?? 0);
  stage.atEnd(() => client.close());
  return { ...started, client };
}

const bucketOf = (tenant: string) => ({ quota: "pace", tenant });

function reportedOf(actions: readonly SeenAction[], tenant: string): string | undefined {
  return actions.findLast(({ id }) => id["tenant"] === tenant)?.reported;
}

describe("quotas on the control port", () => {
  it("assigns to each bucket what its limit says, at once", async () => {
    const { client } = await start();
    const stream = client.open("edge-1");
    stream.report("edge", [
      { id: bucketOf("a") },
      { id: { quota: "free", free: "x" } },
      { id: { quota: "shut", shut: "x" } },
      { id: { quota: "tried", tried: "x" } },
    ]);
    const actions = await waitFor("each is told", () => {
      const seen = new Map(stream.actions.map((action) => [action.id["quota"], action]));
      return seen.size === 4 && seen.get("pace")?.reported.endsWith(" tokens") ? seen : undefined;
    });
    const { hz = 0, ttlSeconds } = actions.get("pace") ?? {};
    expect(ttlSeconds).toBe(10);
    expect(hz).toBeGreaterThan(50);
    expect(hz).toBeLessThanOrEqual(104);
    expect(actions.get("free")).toMatchObject({ reported: "allow", ttlSeconds: 60 });
    expect(actions.get("shut")).toMatchObject({ reported: "deny" });
    expect(actions.get("tried")).toMatchObject({ reported: "allow" });
  });

  it.each([
    ["unknown_quota", { quota: "nobody", tenant: "a" }, "edge"],
    ["unknown_quota", { tenant: "a" }, "edge"],
    ["unknown_quota", {}, "edge"],
    ["wrong_domain", bucketOf("a"), "other"],
    ["wrong_domain", bucketOf("a"), ""],
    ["foreign", { quota: "pace" }, "edge"],
    ["foreign", { ...bucketOf("a"), more: "x" }, "edge"],
    ["foreign", { ...bucketOf("a"), class: "gold" }, "edge"],
    ["id_too_long", bucketOf("a".repeat(bucketIdBytesMax)), "edge"],
    [
      "id_too_many_entries",
      Object.fromEntries(Array.from({ length: bucketIdEntriesMax + 1 }, (_, i) => [`k${i}`, ""])),
      "edge",
    ],
  ])("counts and leaves alone a bucket of %s: %j in %s", async (cause, id, domain) => {
    const { client, events, metric } = await start();
    const stream = client.open("edge-1");
    stream.report(domain, [{ id }]);
    stream.report("edge", [{ id: bucketOf("well") }]);
    await waitFor("the others are served", () => reportedOf(stream.actions, "well"));
    expect(stream.actions.every((action) => action.id["tenant"] === "well")).toBe(true);
    expect(await metric("headgate_quota_ignored_reports_total", { cause })).toBe(1);
    expect(await metric("headgate_quota_ignored_reports_total")).toBe(1);
    expect(events).toContainEqual({ event: "quotaBucketsIgnored", cause });
  });

  it("leaves alone an id that is no message, ends a stream of bytes that are none", async () => {
    const { client, metric } = await start();
    const stream = client.open("edge-1");
    // A usage whose bucket id says that it is longer than it is.
    stream.send(Uint8Array.of(0x12, 4, 0x0a, 2, 0x0a, 9));
    await waitFor("it is counted", async () => {
      const cause = "id_unreadable";
      return (await metric("headgate_quota_ignored_reports_total", { cause })) === 1;
    });
    stream.send(Uint8Array.of(0x12, 200, 1));
    expect((await stream.ended).code).toBe(grpcStatuses.invalidArgument);
    expect(await metric("headgate_control_failed_streams_total", { cause: "unreadable" })).toBe(1);
  });

  it("leaves alone what is beyond a second's bound, and serves the stream on", async () => {
    const { client, metric } = await start();
    const stream = client.open("edge-1");
    const usages = Array.from({ length: bucketReportsPerSecondMax + 1 }, () => ({
      id: bucketOf("a"),
    }));
    stream.report("edge", usages);
    const labels = { cause: "too_many" };
    await waitFor("it is counted", async () => {
      return (await metric("headgate_quota_ignored_reports_total", labels)) >= 1;
    });
    await waitFor("another bucket is served", () => {
      if (reportedOf(stream.actions, "b") !== undefined) return true;
      stream.report("edge", [{ id: bucketOf("b") }]);
      return false;
    });
    expect(await metric("headgate_control_failed_streams_total")).toBe(0);
  });

  it("tells a bucket beyond a stream's bound what holds before the first one", async () => {
    const { client, metric } = await start();
    const stream = client.open("edge-1");
    const usages = Array.from({ length: bucketsPerStreamMax + 1 }, (_, i) => ({
      id: bucketOf(`t${i}`),
    }));
    stream.report("edge", usages);
    const last = `t${bucketsPerStreamMax}`;
    expect(await waitFor("the last is told", () => reportedOf(stream.actions, last))).toBe("allow");
    expect(await metric("headgate_quota_overflows_total", { bound: "stream" })).toBe(1);
    expect(await metric("headgate_quota_holders")).toBe(bucketsPerStreamMax);
  });

  it.each([
    ["too_much", { allowed: 1_000_000, elapsedSeconds: 5 }],
    ["too_much", { allowed: Number.MAX_SAFE_INTEGER, elapsedSeconds: 5 }],
    ["elapsed", { allowed: 1, elapsedSeconds: -5 }],
    ["elapsed", { allowed: 1, elapsedSeconds: 100_000 }],
  ])("counts usage that cannot be, %s: %j", async (reason, usage) => {
    const { client, metric } = await start();
    const stream = client.open("edge-1");
    stream.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("it is told", () => reportedOf(stream.actions, "a"));
    // Until it is told there is nothing that it could have had too much of.
    stream.report("edge", [{ id: bucketOf("a"), elapsedSeconds: 1 }]);
    stream.report("edge", [{ id: bucketOf("a"), ...usage }]);
    await waitFor("it is counted", async () => {
      return (await metric("headgate_quota_unusual_reports_total", { reason })) === 1;
    });
    expect(await metric("headgate_internal_errors_total")).toBe(0);
  });

  it("serves two live streams of one name, each for itself, and says so", async () => {
    const { client, events, metric } = await start();
    const [first, second] = [client.open("edge-1"), client.open("edge-1")];
    first.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("the first is told", () => reportedOf(first.actions, "a"));
    second.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("the second is told", () => reportedOf(second.actions, "a"));
    expect(await metric("headgate_quota_unusual_reports_total", { reason: "node_twice" })).toBe(1);
    expect(await metric("headgate_quota_holders")).toBe(2);
    expect(events).toContainEqual({ event: "quotaNodeTwice", header: "x-headgate-node" });
  });

  it("gives an Envoy that is back on another stream what it had", async () => {
    const { client, metric } = await start();
    const first = client.open("edge-1");
    first.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("it is told", () => reportedOf(first.actions, "a"));
    first.cancel();
    await waitFor("it has gone", async () => (await metric("headgate_quota_streams")) === 0);
    // What it was told it may use still.
    expect(await metric("headgate_quota_holders")).toBe(1);
    const again = client.open("edge-1");
    again.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("it is told again", () => reportedOf(again.actions, "a"));
    expect(await metric("headgate_quota_rejoins_total")).toBe(1);
    expect(await metric("headgate_quota_holders")).toBe(1);
  });

  it("names a bucket to its Envoy as the Envoy named it, also where that is no text", async () => {
    const { client } = await start();
    const stream = client.open("edge-1");
    const message = usageMessage("edge", [{ id: bucketOf("ab") }]);
    const place = Buffer.from(message).lastIndexOf("ab");
    message[place] = 0xff;
    stream.send(message);
    const bytes = await waitFor("it is told", () => stream.received[0]);
    expect(Buffer.from(bytes).includes(Buffer.from([0xff, 0x62]))).toBe(true);
  });
});
