import { describe, expect, it } from "vitest";
import { unknownPeer } from "../../../../src/core/base/peer.js";
import type { QuotaRegistry } from "../../../../src/decide/quota/quota-registry.js";
import { QuotaRig, quotaPolicy, tenantQuota } from "../../../support/quota-rig.js";

function poolOf(registry: QuotaRegistry) {
  const [pool, ...others] = registry.view().pools();
  if (pool === undefined || others.length > 0) throw new Error("it has one pool");
  return pool;
}

describe("QuotaView", () => {
  it("shows a pool's limits, its lease, and what its Envoys want and may use", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    const quiet = rig.connect(registry, "quiet", { t: 5 });
    rig.connect(registry, "busy", { t: 200 });
    await rig.pass(21);
    const pool = poolOf(registry);
    expect(pool.quotas).toEqual(["pace"]);
    expect([pool.domain, pool.entries]).toEqual(["edge", [{ key: "tenant", value: "t" }]]);
    expect([pool.mode, pool.holderCount]).toEqual(["limited", 2]);
    expect(pool.limits).toEqual([{ hits: 60, periodUs: 1_000_000, burst: 60 }]);
    const [levelHits] = pool.levelHits;
    expect(levelHits).toBeGreaterThan(0);
    expect(pool.lease).toMatchObject({ state: "leased", rateMicroHz: expect.any(Number) });
    expect(pool.lease.leftMs).toBeGreaterThan(10_000);
    const [first, second] = pool.holders(2);
    expect([first?.node, second?.node]).toEqual(["busy", "quiet"]);
    expect(first?.demandMicroHz).toBeGreaterThan(second?.demandMicroHz ?? 0);
    expect(first).toMatchObject({ weight: 1, isLeft: false, assignment: { kind: "bucket" } });
    // Each has reported within the last five seconds.
    expect(first?.ageMs).toBeLessThan(5_000);
    expect(pool.heldMicroHz).toBe((first?.heldMicroHz ?? 0) + (second?.heldMicroHz ?? 0));
    expect(pool.demandMicroHz).toBe((first?.demandMicroHz ?? 0) + (second?.demandMicroHz ?? 0));
    expect(pool.holders(1).map(({ node }) => node)).toEqual(["busy"]);
    quiet.lose();
    expect(
      poolOf(registry)
        .holders(2)
        .map(({ isLeft }) => isLeft),
    ).toEqual([false, true]);
  });

  it("names each quota once that shares the limits, with weights by class", async () => {
    const rig = new QuotaRig(
      quotaPolicy(`
rateLimits:
  - domain: edge
    descriptors: [{key: tenant, rate_limit: {requests_per_unit: 60, unit: second}}]
quotas:
  - {name: pace, domain: edge, services: [orders], bucket: [{header: x-tenant, as: tenant}]}
  - name: fast
    domain: edge
    services: [carts]
    bucket: [{header: x-tenant, as: tenant}]
    classes: {header: x-class, weights: {gold: 3, iron: 1}}
services:
  - {name: orders, hosts: [orders.example]}
  - {name: carts, hosts: [carts.example]}
`),
    );
    const registry = rig.join();
    const readId = (id: string) => ({ key: id, entries: () => JSON.parse(id) });

    const session = registry.open({ node: "a", peer: unknownPeer, readId, wake: () => {} });
    const ids = [
      { quota: "pace", tenant: "t" },
      { quota: "fast", tenant: "t", class: "gold" },
      { quota: "fast", tenant: "t", class: "iron" },
    ];
    const usage = { allowedHits: 1, deniedHits: 0, elapsedMs: 0 };
    session.report(
      "edge",
      ids.map((id) => ({ id: JSON.stringify(id), ...usage })),
    );
    await rig.pass(1);
    const pool = poolOf(registry);
    expect([...pool.quotas].sort()).toEqual(["fast", "pace"]);
    expect(
      pool
        .holders(3)
        .map(({ weight }) => weight)
        .sort(),
    ).toEqual([1, 1, 3]);
  });

  it("finds a pool by the keys of its limits, and none that has no bucket here", async () => {
    const rig = new QuotaRig(tenantQuota(60));
    const registry = rig.join();
    rig.connect(registry, "a", { t: 5 });
    await rig.pass(1);
    const [charge] = rig.store.batches.flat().flatMap(({ charges }) => charges);
    if (charge === undefined) throw new Error("it was charged");
    expect(registry.view().poolOf([charge.key])?.entries).toEqual([{ key: "tenant", value: "t" }]);
    expect(registry.view().poolOf([])).toBeUndefined();
  });
});
