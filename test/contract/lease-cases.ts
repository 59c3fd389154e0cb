import { describe, expect, it } from "vitest";
import type { QuotaClaim } from "../../src/core/quota/quota.js";
import { type LeasesQuotas, leaseAsksPerCallMax } from "../../src/core/quota/quota.js";
import { claimHz, leasedHz, testClaim } from "../support/quota-claims.js";
import { realClock } from "../support/real-clock.js";
import { waitFor } from "../support/wait.js";

/** Stores tell whole milliseconds. */
const roundingMs = 2;

const hz = (hits: number): number => hits * 1_000_000;

/**
 * What leases of quotas are like, wherever they are kept.
 *
 * @param join another replica, on keys of one test's own
 */
export function describeLeases(name: string, join: (test: string) => LeasesQuotas): void {
  describe(`leases of quotas, ${name}`, () => {
    describeSharing(join);
    describeEnds(join);
  });
}

type Join = Parameters<typeof describeLeases>[1];

/** Tests may share one store: each has pools of its own. */
function poolOf(test: string): string {
  return Buffer.from(test.padEnd(16)).toString("hex");
}

function describeSharing(join: Join): void {
  it("lends all to one who is alone, and gives it nothing above", async () => {
    const at = { pool: poolOf("alone") };
    expect(await claimHz(join("alone"), { metMicroHz: hz(5) }, at)).toBe(100);
  });

  it("gives the hungry what the others leave, by their weights", async () => {
    const at = { pool: poolOf("hungry") };
    const [quiet, one, three] = [1, 2, 3].map(() => join("hungry"));
    if (quiet === undefined || one === undefined || three === undefined) throw new Error("three");
    const claims = [
      [quiet, { metMicroHz: hz(20) }],
      [one, { hungryMicroHz: hz(500), hungryWeight: 1, weight: 1 }],
      [three, { hungryMicroHz: hz(500), hungryWeight: 3, weight: 3 }],
    ] as const;
    const reported = [0, 0, 0];
    for (let round = 0; round < 3; round += 1) {
      for (const [i, [replica, claim]] of claims.entries()) {
        const heldMicroHz = hz(reported[i] ?? 0);
        reported[i] = await claimHz(replica, { ...claim, heldMicroHz }, at);
      }
    }
    expect(reported).toEqual([20, 20, 60]);
  });

  it("gives nobody what another one's Envoys may still use", async () => {
    const at = { pool: poolOf("still") };
    const [first, second] = [join("still"), join("still")];
    expect(await claimHz(first, {}, at)).toBe(100);
    const hungry = { hungryMicroHz: hz(200), hungryWeight: 1 };
    expect(await claimHz(second, hungry, at)).toBe(0);
    // It is to give back, and has not: its Envoys hold on.
    expect(await claimHz(first, { heldMicroHz: hz(100) }, at)).toBe(0);
    expect(await claimHz(second, hungry, at)).toBe(0);
    expect(await claimHz(first, { heldMicroHz: hz(30) }, at)).toBe(0);
    expect(await claimHz(second, hungry, at)).toBe(70);
  });
}

function describeEnds(join: Join): void {
  it("lets nothing grow while less may be handed out than is held", async () => {
    const at = { pool: poolOf("fallen") };
    const [first, second] = [join("fallen"), join("fallen")];
    expect(await claimHz(first, {}, at)).toBe(100);
    const fallen = { ceilingMicroHz: hz(10), hungryMicroHz: hz(50), hungryWeight: 1 };
    expect(await claimHz(second, fallen, at)).toBe(0);
    expect(await claimHz(first, { ...fallen, heldMicroHz: hz(100) }, at)).toBeLessThan(10);
  });

  it("gives what a silent replica had to others when its lease is over, not before", async () => {
    const leaseMs = 100;
    const at = { pool: poolOf("silent") };
    const [dead, live] = [join("silent"), join("silent")];
    const startMs = realClock.monotonicMs();
    expect(await claimHz(dead, {}, { ...at, leaseMs })).toBe(100);
    const hungry = { hungryMicroHz: hz(90), hungryWeight: 1 };
    await waitFor("the lease is over", async () => (await claimHz(live, hungry, at)) === 100);
    expect(realClock.monotonicMs() - startMs).toBeGreaterThan(leaseMs - roundingMs);
  });

  it("tells each what the others have of its identities, and of no others", async () => {
    const pool = poolOf("crowds");
    const [one, other] = [join("crowds"), join("crowds")];
    const claimed = async (leases: LeasesQuotas, crowds: QuotaClaim["crowds"]) => {
      const ask = { pool, claim: testClaim({ crowds }), leaseMs: 60_000 };
      const [answer] = await leases.exchange([ask]);
      return answer?.kind === "leased" ? answer.lease.elsewhere : answer;
    };
    const [liar, honest] = ["1a", "2b"];
    expect(await claimed(one, [{ identity: liar, count: 12 }])).toEqual([
      { identity: liar, count: 0 },
    ]);
    const both = [
      { identity: honest, count: 1 },
      { identity: liar, count: 8 },
    ];
    expect(await claimed(other, both)).toEqual([
      { identity: honest, count: 0 },
      { identity: liar, count: 12 },
    ]);
    expect(await claimed(one, [])).toEqual([]);
    expect(await claimed(other, both)).toEqual(both.map((one) => ({ ...one, count: 0 })));
  });

  it("answers many pools at once, each its own, in order", async () => {
    const leases = join("many");
    const asks = Array.from({ length: 2 * leaseAsksPerCallMax + 50 }, (_, i) => ({
      pool: `${(i * 37).toString(16).padStart(2, "0")}-many-${i}`,
      claim: testClaim({ ceilingMicroHz: hz(i + 1) }),
      leaseMs: 60_000,
    }));
    const answers = await leases.exchange(asks);
    expect(answers.map(leasedHz)).toEqual(asks.map((_, i) => i + 1));
  });
}
