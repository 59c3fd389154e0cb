import { describe, expect, it } from "vitest";
import { unknownPeer } from "../../../../src/core/base/peer.js";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import type { QuotaRegistry } from "../../../../src/decide/quota/quota-registry.js";
import {
  bucketBytes,
  bytesPerIdByte,
  poolBytes,
} from "../../../../src/decide/quota/quota-sessions.js";
import { settlePromises } from "../../../support/fake-clock.js";
import { QuotaRig, quotaPolicy, tenantQuota } from "../../../support/quota-rig.js";

const ttlSeconds = 10;
const leaseSeconds = 15;
const reportSeconds = 5;

function frozen(tenant: string): OverrideTable {
  const override: Override = {
    id: "one",
    domain: "edge",
    entries: [{ key: "tenant", value: tenant }],
    isPrefix: false,
    effect: { kind: "frozen" },
    reason: "a test",
    author: "ann",
    createdEpochMs: 0,
  };
  return new OverrideTable([override], 1, 0);
}

/** The lease of the one pool that a replica has. */
function leaseOf(rig: QuotaRig, place = 0) {
  const [pool] = [...(rig.registries[place]?.view().pools() ?? [])];
  if (pool === undefined) throw new Error("it has no pool");
  return pool.lease;
}

/** Opens 2,500 streams, each with a bucket of one tenant, and hears the first lease. */
async function openMany(rig: QuotaRig, registry: QuotaRegistry, wake: () => void): Promise<void> {
  const readId = (tenant: string) => ({ key: tenant, entries: () => ({ quota: "pace", tenant }) });
  const usage = { allowedHits: 1, deniedHits: 0, elapsedMs: 0 };
  for (let i = 0; i < 2_500; i += 1) {
    const session = registry.open({ node: `edge-${i}`, peer: unknownPeer, readId, wake });
    session.report("edge", [{ id: "t", ...usage }]);
  }
  rig.clock.runTurns();
  await settlePromises();
}

describe("QuotaRegistry", () => {
  it("hands out the rate of the limit, and no more, under too much demand", async () => {
    const rig = new QuotaRig(tenantQuota(100));
    const registry = rig.join();
    for (const node of ["a", "b", "c"]) rig.connect(registry, node, { t: 80 });
    await rig.pass(20);
    const hz = await rig.passedHz(60);
    expect(hz).toBeGreaterThan(85);
    expect(hz).toBeLessThan(102);
    expect(rig.events).toEqual([]);
  });

  it("gives one Envoy what the others leave, over replicas, within two reports", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const [first, second] = [rig.join(), rig.join()];
    const quiet = rig.connect(first, "a", { t: 50 });
    const busy = rig.connect(second, "b", { t: 5 });
    await rig.pass(30);
    quiet.ask("t", 5);
    busy.ask("t", 100);
    await rig.pass(2 * reportSeconds + 1);
    expect(busy.reportedHz("t")).toBeGreaterThan(30);
  });

  it("gives shares to as many buckets as their bytes allow, and room back in time", async () => {
    const rig = new QuotaRig(tenantQuota(100));
    const registry = rig.join({ bucketsBytesMax: 100_000 });
    const bucketsOf = (node: string, length: number): number => {
      const before = registry.holderCount;
      const tenants = Array.from({ length: 100 }, (_, i) => [String(i).padStart(length, node), 1]);
      rig.connect(registry, node, Object.fromEntries(tenants));
      return before;
    };
    bucketsOf("a", 10);
    await rig.pass(2 * reportSeconds);
    const shortCount = registry.holderCount;
    const bytesOf = (length: number) => bucketBytes + poolBytes + bytesPerIdByte * length;
    expect(shortCount).toBe(Math.floor(100_000 / bytesOf(10)));
    expect(registry.counts.overflows.get("identity")).toBeGreaterThan(0);
    // Other limits: who has a share keeps its room, and takes none twice.
    rig.policy = tenantQuota(50, { limit: "unit: minute" });
    await rig.pass(2 * ttlSeconds);
    expect(registry.holderCount).toBe(shortCount);
    expect(registry.counts.reported.get("abandon") ?? 0).toBe(0);
    for (const envoy of rig.envoys) envoy.lose();
    await rig.pass(2 * ttlSeconds);
    expect(registry.holderCount).toBe(0);
    bucketsOf("b", 1_000);
    await rig.pass(2 * reportSeconds);
    expect(registry.holderCount).toBe(Math.floor(100_000 / bytesOf(1_000)));
  });

  it("counts the memory of a pool once, also after its first bucket has left", async () => {
    const rig = new QuotaRig(tenantQuota(1_000));
    const own = bucketBytes + bytesPerIdByte;
    // For a pool of three buckets, but not for a second pool beside two.
    const registry = rig.join({ bucketsBytesMax: poolBytes + 3 * own });
    const [first] = ["a", "b", "c"].map((node) => rig.connect(registry, node, { t: 5 }));
    await rig.pass(2 * reportSeconds);
    expect(registry.holderCount).toBe(3);
    first?.lose();
    await rig.pass(2 * ttlSeconds);
    expect(registry.holderCount).toBe(2);
    rig.connect(registry, "d", { u: 5 });
    await rig.pass(reportSeconds);
    expect(registry.holderCount).toBe(2);
    rig.connect(registry, "e", { t: 5 });
    await rig.pass(reportSeconds);
    expect(registry.holderCount).toBe(3);
  });

  it("tells another policy, an override and its end at once, without a report", async () => {
    const rig = new QuotaRig(tenantQuota(100));
    const envoy = rig.connect(rig.join(), "a", { t: 200, u: 1 });
    await rig.pass(12);
    rig.policy = tenantQuota(10);
    await rig.pass(0.5);
    expect(envoy.reportedHz("t")).toBeLessThan(11);
    rig.policy = tenantQuota(100);
    rig.overrides = frozen("t");
    await rig.pass(0.5);
    expect(envoy.buckets.get("t")?.reported).toMatchObject({ kind: "blanket", rule: "deny" });
    expect(envoy.buckets.get("u")?.reported).toMatchObject({ kind: "bucket" });
    rig.overrides = noOverrides;
    await rig.pass(2);
    expect(envoy.reportedHz("t")).toBeGreaterThan(0);
  });

  it("lets go of buckets whose quota is gone, and takes them up with it", async () => {
    const rig = new QuotaRig(tenantQuota(100));
    const registry = rig.join();
    const envoy = rig.connect(registry, "a", { t: 200 });
    await rig.pass(3);
    rig.policy = quotaPolicy("rateLimits: [{domain: edge, descriptors: []}]");
    await rig.pass(1);
    expect(envoy.buckets.get("t")?.reported).toBeUndefined();
    expect(rig.events).toContainEqual({ kind: "quotaBucketsIgnored", cause: "unknown_quota" });
    expect(registry.counts.reported.get("abandon")).toBe(1);
    rig.policy = tenantQuota(100);
    await rig.pass(reportSeconds + 2);
    expect(envoy.buckets.get("t")?.reported).toMatchObject({ kind: "bucket" });
    // What it was told before counted until its time was up.
    await rig.pass(ttlSeconds + 2);
    expect(registry.holderCount).toBe(1);
  });

  it("counts what Envoys let pass and refuse with the rule's own calls", async () => {
    const policy = tenantQuota(10);
    const rig = new QuotaRig(policy);
    rig.connect(rig.join(), "a", { t: 50 });
    await rig.pass(60);
    const [rule] = rig.counters.forPolicy(policy);
    expect(rule?.ok).toBeGreaterThan(400);
    expect(rule?.over).toBeGreaterThan(1_500);
    expect(rule?.hits).toMatchObject({ within: rule?.ok, over: rule?.over });
  });

  // What the store had no room for once waited for it, and shadow mode showed a quarter of the use.
  it("charges all that Envoys let pass of a limit in shadow mode, also beside calls", async () => {
    const quota = ", callsShare: 0.1";
    const rig = new QuotaRig(tenantQuota(50, { domain: "        shadow_mode: true", quota }));
    const envoy = rig.connect(rig.join(), "a", { t: 200 });
    await rig.pass(60);
    const costs = rig.store.batches.flat().map(({ charges }) => charges[0]?.cost ?? 0);
    const charged = costs.reduce((sum, cost) => sum + cost, 0);
    expect(Math.abs(charged - envoy.passed)).toBeLessThan(200);
  });

  it("charges what Envoys let pass to the key that calls ask for", async () => {
    const rig = new QuotaRig(tenantQuota(50));
    const envoy = rig.connect(rig.join(), "a", { t: 30 });
    await rig.pass(20);
    const charged = rig.store.batches.flat().reduce((sum, { charges }) => {
      expect(charges[0]?.role).toBe("settle");
      return sum + (charges[0]?.cost ?? 0);
    }, 0);
    expect(Math.abs(charged - envoy.passed)).toBeLessThan(60);
  });

  it("stays inside its last lease while the store is away, and says so once", async () => {
    const rig = new QuotaRig(tenantQuota(60, { domain: "    on_store_failure: error" }));
    const registry = rig.join();
    const envoy = rig.connect(registry, "a", { t: 100 });
    await rig.pass(20);
    rig.isStoreAway = true;
    rig.store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    await rig.pass(2);
    expect(rig.events).toEqual([{ kind: "quotaLeasesUnrenewed", code: "STORE_TIMEOUT" }]);
    expect(leaseOf(rig).state).toBe("unrenewed");
    expect(await rig.passedHz(8)).toBeGreaterThan(30);
    await rig.pass(leaseSeconds);
    expect(rig.events.at(-1)).toEqual({ kind: "quotaLeasesLost" });
    expect(leaseOf(rig)).toMatchObject({ state: "lost", rateMicroHz: 0, leftMs: 0 });
    // Nothing is renewed: Envoy is on its own.
    const before = envoy.passed;
    await rig.pass(10);
    expect(envoy.passed).toBe(before);
    rig.isStoreAway = false;
    rig.store.fault = { kind: "none" };
    await rig.pass(reportSeconds + 3);
    expect(rig.events.at(-1)).toEqual({ kind: "quotaLeasesFound" });
    expect(await rig.passedHz(10)).toBeGreaterThan(30);
  });

  it("has lost no lease where an override took longer than one", async () => {
    const rig = new QuotaRig(tenantQuota(60, { domain: "    on_store_failure: deny" }));
    const envoy = rig.connect(rig.join(), "a", { t: 100 });
    await rig.pass(20);
    rig.overrides = frozen("t");
    await rig.pass(2 * leaseSeconds);
    expect(envoy.buckets.get("t")?.reported).toMatchObject({ kind: "blanket", rule: "deny" });
    rig.overrides = noOverrides;
    await rig.pass(reportSeconds + 3);
    expect(rig.events).toEqual([]);
    expect(await rig.passedHz(10)).toBeGreaterThan(30);
  });

  it("tells that leases are lost, and found, also where no claim has failed", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    rig.connect(rig.join(), "a", { t: 100 });
    await rig.pass(20);
    // The process stands still for so long that its lease is over.
    rig.clock.advance(2_000 * leaseSeconds);
    await rig.pass(3);
    const reported = rig.events.splice(0);
    expect(reported[0]).toEqual({ kind: "quotaLeasesLost" });
    expect(reported.at(-1)).toEqual({ kind: "quotaLeasesFound" });
    rig.isStoreAway = true;
    await rig.pass(2 * leaseSeconds);
    expect(rig.events).toEqual([
      { kind: "quotaLeasesUnrenewed", code: "STORE_TIMEOUT" },
      { kind: "quotaLeasesLost" },
    ]);
  });

  it("tells once of pools of which one cannot be claimed, whenever the others are", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    rig.connect(registry, "a", { t: 100 });
    // Others are claimed in turns of their own.
    await rig.pass(0.5);
    rig.connect(registry, "b", { u: 100 });
    await rig.pass(20);
    rig.isFirstPlaceAway = true;
    await rig.pass(2 * leaseSeconds);
    expect(rig.events).toEqual([
      { kind: "quotaLeasesUnrenewed", code: "STORE_TIMEOUT" },
      { kind: "quotaLeasesLost" },
    ]);
    rig.isFirstPlaceAway = false;
    await rig.pass(3);
    expect(rig.events.slice(2)).toEqual([{ kind: "quotaLeasesFound" }]);
  });

  it.each([
    ["local", 20, 32],
    ["allow", 99, 101],
    ["deny", 0, 0],
  ])("goes on by on_store_failure %s when its lease is over", async (mode, least, most) => {
    const rig = new QuotaRig(tenantQuota(60, { domain: `    on_store_failure: ${mode}` }));
    const registry = rig.join();
    // One more, which divides what is kept locally.
    rig.join();
    rig.connect(registry, "a", { t: 100 });
    await rig.pass(20);
    rig.isStoreAway = true;
    await rig.pass(leaseSeconds + ttlSeconds + reportSeconds);
    const hz = await rig.passedHz(20);
    expect(hz).toBeGreaterThanOrEqual(least);
    expect(hz).toBeLessThanOrEqual(most);
    rig.isStoreAway = false;
    await rig.pass(20);
    expect(await rig.passedHz(20)).toBeLessThan(66);
  });

  it("gives a dead replica's part to the others when its lease is over, not before", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const [dead, live] = [rig.join(), rig.join()];
    rig.connect(dead, "a", { t: 100 });
    const other = rig.connect(live, "b", { t: 100 });
    await rig.pass(25);
    const before = other.reportedHz("t");
    expect(before).toBeLessThan(40);
    dead.close();
    await rig.pass(ttlSeconds);
    expect(other.reportedHz("t")).toBeLessThan(40);
    await rig.pass(leaseSeconds);
    expect(other.reportedHz("t")).toBeGreaterThan(45);
  });

  it("gives nothing of what a lost Envoy may use still, and all when it is back", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    const lost = rig.connect(registry, "a", { t: 100 });
    const other = rig.connect(registry, "b", { t: 100 });
    await rig.pass(25);
    const had = lost.reportedHz("t");
    lost.lose();
    await rig.pass(3);
    expect(other.reportedHz("t")).toBeLessThan(60 - had + 6);
    lost.open(registry);
    await rig.pass(reportSeconds);
    expect(registry.counts.rejoinCount).toBe(1);
    expect(registry.holderCount).toBe(2);
    lost.lose();
    await rig.pass(ttlSeconds + 3 * reportSeconds);
    expect(registry.holderCount).toBe(1);
    expect(other.reportedHz("t")).toBeGreaterThan(45);
  });

  it("gives way to calls of the same key, and shares one budget with them", async () => {
    const rig = new QuotaRig(tenantQuota(60, { quota: ", callsShare: 0.5" }));
    rig.connect(rig.join(), "a", { t: 200 });
    await rig.pass(20);
    const [charge] = rig.store.batches.at(-1)?.[0]?.charges ?? [];
    if (charge === undefined) throw new Error("it was charged");
    let called = 0;
    const before = rig.passed;
    for (let step = 0; step < 1_200; step += 1) {
      const asked = [
        { charges: [{ ...charge, cost: 1, role: "enforce" as const }], multiplicity: 1 },
      ];
      const [outcome] = await rig.store.take(asked, Number.POSITIVE_INFINITY);
      if (outcome?.kind === "decided") called += outcome.result.grantedCount;
      await rig.pass(0.05);
    }
    const seconds = 60;
    expect(called / seconds).toBeGreaterThan(5);
    expect((called + rig.passed - before) / seconds).toBeLessThan(66);
  });

  it("renews in between reports what holds for less than the time between them", async () => {
    const rig = new QuotaRig(tenantQuota(60, { quota: ", ttl: 2s" }));
    const envoy = rig.connect(rig.join(), "a", { t: 20 });
    await rig.pass(12);
    const { refused } = envoy;
    await rig.pass(20);
    expect(envoy.refused).toBe(refused);
  });

  it("abandons a bucket that nobody uses for a minute", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    const envoy = rig.connect(registry, "a", { t: 5 });
    await rig.pass(10);
    envoy.ask("t", 0);
    await rig.pass(70);
    expect(envoy.buckets.get("t")?.isKnown).toBe(false);
    await rig.pass(ttlSeconds + 2);
    expect([registry.holderCount, registry.poolCount]).toEqual([0, 0]);
  });

  it("gives what an Envoy left to no other certificate that says its name", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    const [own, other] = ["one", "two"].map((name) => ({
      node: "a",
      peer: { kind: "certificate", identity: `uri:${name}`, names: [name] } as const,
    }));
    if (own === undefined || other === undefined) throw new Error("two");
    const first = rig.connect(registry, own, { t: 5 });
    await rig.pass(1);
    first.lose();
    const stranger = rig.connect(registry, other, { t: 5 });
    await rig.pass(1);
    expect([registry.counts.rejoinCount, registry.holderCount]).toEqual([0, 2]);
    stranger.lose();
    rig.connect(registry, own, { t: 5 });
    await rig.pass(1);
    // The stranger never had a share, so nothing of it is kept.
    expect([registry.counts.rejoinCount, registry.holderCount]).toEqual([1, 1]);
    expect(registry.counts.unusual.get("node_twice")).toBe(0);
  });

  it("keeps of each bucket the newest word for an Envoy that does not read", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    let wakes = 0;
    const session = registry.open({
      node: "a",
      peer: unknownPeer,
      readId: (tenant) => ({ key: tenant, entries: () => ({ quota: "pace", tenant }) }),
      wake: () => {
        wakes += 1;
      },
    });
    const usage = { allowedHits: 9, deniedHits: 90, elapsedMs: 1_000 };
    for (let second = 0; second < 20; second += 1) {
      session.report("edge", [{ id: "t", ...usage }]);
      await rig.pass(1);
    }
    expect(wakes).toBeGreaterThan(10);
    expect(session.takeActions(10)).toHaveLength(1);
    expect(session.takeActions(10)).toHaveLength(0);
  });

  // A thousand pools of a thousand holders, and ten thousand streams, took 0.2 s of each tick.
  it("wakes many streams in turns of the event loop", async () => {
    const rig = new QuotaRig(tenantQuota(1_000_000));
    const registry = rig.join();
    const wakesOfTurns: number[] = [];
    let wakes = 0;
    const wake = (): void => {
      wakes += 1;
      if (wakes > 1) return;
      rig.clock.scheduleTurn(() => {
        wakesOfTurns.push(wakes);
        wakes = 0;
      });
    };
    await openMany(rig, registry, wake);
    wakesOfTurns.length = 0;
    rig.clock.advance(100);
    expect(wakesOfTurns).toEqual([1_000, 1_000, 500]);
  });

  it("goes on with no tick in whose middle it is closed", async () => {
    const rig = new QuotaRig(tenantQuota(1_000_000));
    const registry = rig.join();
    let wakes = 0;
    const wake = (): void => {
      wakes += 1;
      if (wakes === 1) registry.close();
    };
    await openMany(rig, registry, wake);
    wakes = 0;
    rig.clock.advance(200);
    rig.clock.runTurns();
    expect(wakes).toBe(1_000);
  });
});
