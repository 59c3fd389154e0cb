import { describe, expect, it } from "vitest";
import { grpcStatuses } from "../../../../src/core/base/grpc-status.js";
import { type Peer, unknownPeer } from "../../../../src/core/base/peer.js";
import {
  actionsPerMessageMax,
  createQuotaService,
  unreadMsMax,
} from "../../../../src/rpc/control/quota-stream.js";
import { ControlCounts, ControlStreams } from "../../../../src/rpc/nodes/control-stream.js";
import { NodeRegistry } from "../../../../src/rpc/nodes/node-registry.js";
import { TestStream, testOwners } from "../../../support/control-rig.js";
import { readActions, usageMessage } from "../../../support/quota-client.js";
import { QuotaRig, tenantQuota } from "../../../support/quota-rig.js";

/** One stream of an Envoy that says these things of itself. */
function open(metadata: Readonly<Record<string, string>> = {}, peer: Peer = unknownPeer) {
  const rig = new QuotaRig(tenantQuota(1_000_000));
  const quotaRegistry = rig.join();
  const counts = new ControlCounts();
  const registry = new NodeRegistry({
    nowMs: () => rig.clock.monotonicMs(),
    ttlMs: 15_000,
    configuredShare: () => 0,
    configuredHigh: () => 0,
  });
  const streams = new ControlStreams({ registry, owners: testOwners(), counts, clock: rig.clock });
  const [method] = createQuotaService({
    streams,
    quotas: quotaRegistry,
    onIgnored: () => {},
  }).methods;
  if (method?.kind !== "bidi") throw new Error("it has one method, both ways");
  const stream = new TestStream();
  const call = {
    deadlineMs: Infinity,
    metadata: (name: string) => metadata[name],
    peer,
  };
  stream.listen(method.open(call, stream));
  const report = (count: number): void => {
    const usages = Array.from({ length: count }, (_, i) => ({
      id: { quota: "pace", tenant: `t${i}` },
    }));
    stream.bytes(usageMessage("edge", usages));
  };
  const nodes = (): readonly string[] =>
    [...quotaRegistry.view().pools()].flatMap((pool) => pool.holders(10).map(({ node }) => node));
  return { rig, quotaRegistry, counts, stream, report, nodes };
}

describe("createQuotaService()", () => {
  it("tells many buckets in messages of bounded size", async () => {
    const { rig, stream, report } = open();
    report(2 * actionsPerMessageMax + 1);
    await rig.pass(0.5);
    const sizes = stream.sent.map((bytes) => readActions(bytes).length);
    expect(Math.max(...sizes)).toBe(actionsPerMessageMax);
    expect(new Set(stream.sent.flatMap(readActions).map(({ id }) => id["tenant"])).size).toBe(
      2 * actionsPerMessageMax + 1,
    );
  });

  /** A message of 1,000 new buckets took 40 ms, for which nothing else was served. */
  it("looks at many buckets in turns of the event loop, and reads nothing else meanwhile", () => {
    const { rig, quotaRegistry, stream, report } = open();
    report(900);
    expect(quotaRegistry.holderCount).toBeLessThan(100);
    expect(stream.nextCount).toBe(0);
    rig.clock.runTurns();
    expect(quotaRegistry.holderCount).toBe(900);
    expect(stream.nextCount).toBe(1);
    // A message that fits into a turn needs no other one.
    report(20);
    expect(stream.nextCount).toBe(2);
  });

  it("forgets the rest of a message when its stream ends", () => {
    const { rig, quotaRegistry, stream, report } = open();
    report(900);
    const { holderCount } = quotaRegistry;
    stream.cancel();
    rig.clock.runTurns();
    expect(quotaRegistry.holderCount).toBeLessThanOrEqual(holderCount);
    expect(stream.nextCount).toBe(0);
  });

  it("reads nothing more of an Envoy that does not read, until it does", async () => {
    const { rig, stream, report } = open();
    stream.isReading = false;
    report(1);
    await rig.pass(1);
    const { length } = stream.sent;
    expect(length).toBe(1);
    report(1);
    expect(stream.nextCount).toBe(1);
    await rig.pass(5);
    expect(stream.sent).toHaveLength(1);
    stream.drain();
    expect(stream.nextCount).toBe(2);
    expect(stream.sent.length).toBeGreaterThan(1);
  });

  it("ends a stream that leaves unread what it was sent for too long", async () => {
    const { rig, quotaRegistry, counts, stream, report } = open();
    stream.isReading = false;
    report(1);
    await rig.pass(unreadMsMax / 1_000 - 1);
    expect(stream.status).toBeUndefined();
    await rig.pass(3);
    expect(stream.status).toBe(grpcStatuses.deadlineExceeded);
    expect(counts.faults.get("unread")).toBe(1);
    expect(quotaRegistry.sessionCount).toBe(0);
  });

  it.each([
    [{ "x-headgate-node": "edge-1", "x-forwarded-for": "10.0.0.7" }, "edge-1"],
    [{ "x-headgate-node": "%HOSTNAME%", "x-forwarded-for": "10.0.0.7" }, "10.0.0.7"],
    [{ "x-forwarded-for": "10.0.0.7" }, "10.0.0.7"],
    [{ "x-headgate-node": "", "x-forwarded-for": "10.0.0.7" }, "10.0.0.7"],
    [{ "x-headgate-node": "" }, ""],
    [{}, ""],
  ])("knows an Envoy by what it says, or by its address: %j", async (metadata, name) => {
    const { rig, report, nodes } = open(metadata);
    report(1);
    await rig.pass(0.5);
    expect(nodes()).toEqual([name]);
  });

  it("has a stream end that says nothing", async () => {
    const { rig, counts, stream } = open();
    await rig.pass(31);
    expect(stream.status).toBe(grpcStatuses.deadlineExceeded);
    expect(counts.faults.get("silent")).toBe(1);
  });
});
