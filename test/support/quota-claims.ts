import type { LeasesQuotas, QuotaClaim, QuotaLeaseAnswer } from "../../src/core/quota/quota.js";

/** Names of pools are digests. */
export const testPool = "a7".repeat(16);

/** A claim of one who wants nothing, of 100 hits a second, with what is different about it. */
export function testClaim(different: Partial<QuotaClaim> = {}): QuotaClaim {
  const nothing = { metMicroHz: 0, hungryMicroHz: 0, hungryWeight: 0, weight: 1, heldMicroHz: 0 };
  return { ...nothing, ceilingMicroHz: 100_000_000, crowds: [], ...different };
}

/** Claims one pool; answers what may be handed out, in hits a second. */
export async function claimHz(
  leases: LeasesQuotas,
  claim: Partial<QuotaClaim>,
  { pool = testPool, leaseMs = 3_600_000 } = {},
): Promise<number> {
  const [answer] = await leases.exchange([{ pool, claim: testClaim(claim), leaseMs }]);
  return leasedHz(answer);
}

/** What an answer lets hand out; throws for one that is no lease. */
export function leasedHz(answer: QuotaLeaseAnswer | undefined): number {
  if (answer?.kind !== "leased") throw new Error(`no lease: ${JSON.stringify(answer)}`);
  return answer.lease.rateMicroHz / 1_000_000;
}
