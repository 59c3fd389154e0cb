import { describe, expect, it } from "vitest";
import { unknownPeer } from "../../../../src/core/base/peer.js";
import type { QuotaRegistry } from "../../../../src/decide/quota/quota-registry.js";
import type { QuotaCaller } from "../../../../src/decide/quota/quota-session.js";
import {
  bucketBytes,
  bucketsPerStreamMax,
  bytesPerIdByte,
  poolBytes,
} from "../../../../src/decide/quota/quota-sessions.js";
import { QuotaRig, tenantQuota } from "../../../support/quota-rig.js";

const usage = { allowedHits: 1, deniedHits: 0, elapsedMs: 1_000 };

/** One report of each id. */
function reportsOf(...ids: readonly string[]) {
  return ids.map((id) => ({ id, ...usage }));
}

/** A stream whose ids are entries `name=value`; an empty one cannot be read. */
function open(registry: QuotaRegistry, fields: Partial<QuotaCaller> = {}) {
  const readId = (id: string) => {
    const entries = () => Object.fromEntries(id.split(",").map((entry) => entry.split("=")));
    return id === "" ? undefined : { key: id, entries };
  };
  return registry.open({ node: "a", peer: unknownPeer, readId, wake: () => {}, ...fields });
}

const bucket = (tenant: string): string => `quota=pace,tenant=${tenant}`;

/** A replica that divides 60 hits a second of each tenant. */
function oneReplica(parts: Parameters<QuotaRig["join"]>[0] = {}) {
  const rig = new QuotaRig(tenantQuota(60));
  return { rig, registry: rig.join(parts) };
}

describe("OpenQuotaSession", () => {
  it.each([
    { what: "unreadable", id: "", domain: "edge", ignored: undefined },
    { what: "of no quota", id: "quota=none,tenant=t", domain: "edge", ignored: "unknown_quota" },
    { what: "of another domain", id: bucket("t"), domain: "other", ignored: "wrong_domain" },
    { what: "without an entry", id: "quota=pace", domain: "edge", ignored: "foreign" },
    { what: "with another entry", id: `${bucket("t")},x=y`, domain: "edge", ignored: "foreign" },
  ] as const)("gives no share to a bucket that is $what", ({ id, domain, ignored }) => {
    const { registry, rig } = oneReplica();
    const session = open(registry);
    session.report(domain, reportsOf(id));
    expect(registry.holderCount).toBe(0);
    expect(session.takeActions(10)).toEqual([]);
    const counted = [...registry.counts.ignored].filter(([, count]) => count > 0);
    expect(counted).toEqual(ignored === undefined ? [] : [[ignored, 1]]);
    const event = { kind: "quotaBucketsIgnored", cause: ignored };
    expect(rig.events).toEqual(ignored === undefined ? [] : [event]);
  });

  it("says that there is no policy, rather than no such quota", () => {
    const rig = new QuotaRig(undefined);
    const registry = rig.join();
    open(registry).report("edge", reportsOf(bucket("t")));
    expect(registry.counts.ignored.get("no_policy")).toBe(1);
  });

  it("takes no report of a bucket in another domain than its own", async () => {
    const { registry, rig } = oneReplica();
    const session = open(registry);
    session.report("edge", reportsOf(bucket("t")));
    session.report("other", [{ id: bucket("t"), ...usage, allowedHits: 1_000 }]);
    expect(registry.counts.ignored.get("wrong_domain")).toBe(1);
    await rig.pass(1);
    expect(registry.counts.chargedHits).toBe(1);
  });

  it("costs more for ids that are new on the stream, known or not", () => {
    const { registry } = oneReplica();
    const session = open(registry);
    expect(session.report("edge", reportsOf(bucket("t"), ""))).toBe(22);
    expect(session.report("edge", reportsOf(bucket("t"), bucket("t")))).toBe(2);
    expect(registry.counts.reportCount).toBe(3);
    session.close();
    expect(session.report("edge", reportsOf(bucket("t")))).toBe(0);
  });

  it("knows a bucket by its entries, in whatever order its id has them", () => {
    const { registry } = oneReplica();
    const entries = () => ({ quota: "pace", tenant: "t" });
    const session = open(registry, { readId: () => ({ key: "t", entries }) });
    session.report("edge", reportsOf("one", "other"));
    expect(registry.holderCount).toBe(1);
  });

  it("checks the memory of a bucket and its pool before it makes the pool", () => {
    const own = bucketBytes + bytesPerIdByte * bucket("t").length;
    const { registry } = oneReplica({ bucketsBytesMax: poolBytes + 2 * own });
    const session = open(registry);
    session.report("edge", reportsOf(bucket("t"), bucket("u")));
    expect([registry.holderCount, registry.poolCount]).toEqual([1, 1]);
    const { overflows } = registry.counts;
    expect([overflows.get("identity"), overflows.get("process")]).toEqual([1, 0]);
    // Another bucket of the pool that is there takes no more for it.
    open(registry, { node: "b" }).report("edge", reportsOf(bucket("t")));
    expect(registry.holderCount).toBe(2);
  });

  it("gives a stream's buckets beyond the most it may have the rule before assignments", () => {
    const { registry } = oneReplica();
    const session = open(registry);
    const ids = Array.from({ length: bucketsPerStreamMax + 2 }, (_, i) => bucket(`t${i}`));
    session.report("edge", reportsOf(...ids.slice(0, bucketsPerStreamMax)));
    session.takeActions(bucketsPerStreamMax);
    session.report("edge", reportsOf(...ids.slice(bucketsPerStreamMax)));
    expect(registry.holderCount).toBe(bucketsPerStreamMax);
    expect(registry.counts.overflows.get("stream")).toBe(2);
    const actions = session.takeActions(10);
    expect(actions.map(({ id }) => id)).toEqual(ids.slice(bucketsPerStreamMax));
    expect(actions[0]?.reported).toMatchObject({
      kind: "assign",
      assignment: { kind: "blanket", rule: "allow" },
    });
  });

  it("gives out as many instructions as are asked for, and the others later", async () => {
    const { registry, rig } = oneReplica();
    const session = open(registry);
    session.report("edge", reportsOf(bucket("a"), bucket("b"), bucket("c")));
    await rig.pass(1);
    const taken = [session.takeActions(2), session.takeActions(2), session.takeActions(2)];
    expect(taken.map((actions) => actions.map(({ id }) => id))).toEqual([
      [bucket("a"), bucket("b")],
      [bucket("c")],
      [],
    ]);
    session.report("edge", reportsOf(bucket("a")));
    session.close();
    expect(session.takeActions(2)).toEqual([]);
  });

  it("tells of two open streams of one Envoy, and lets neither inherit", async () => {
    const { registry, rig } = oneReplica();
    const [first, second] = [open(registry), open(registry)];
    first.report("edge", reportsOf(bucket("t")));
    expect(registry.counts.unusual.get("node_twice")).toBe(0);
    second.report("edge", reportsOf(bucket("t"), bucket("u")));
    expect(registry.counts.unusual.get("node_twice")).toBe(1);
    expect(rig.events).toEqual([{ kind: "quotaNodeTwice" }]);
    await rig.pass(1);
    second.close();
    const third = open(registry);
    third.report("edge", reportsOf(bucket("u")));
    expect(registry.counts.rejoinCount).toBe(0);
    expect(registry.counts.unusual.get("node_twice")).toBe(2);
  });

  it("lets Envoys without a name inherit nothing, and takes none for another", async () => {
    const { registry, rig } = oneReplica();
    const session = open(registry, { node: undefined });
    session.report("edge", reportsOf(bucket("t")));
    await rig.pass(1);
    session.close();
    for (let i = 0; i < 2; i += 1) {
      open(registry, { node: undefined }).report("edge", reportsOf(bucket("t")));
    }
    expect(registry.counts.rejoinCount).toBe(0);
    expect(registry.counts.unusual.get("node_twice")).toBe(0);
  });
});
