import { describe, expect, it } from "vitest";
import type { QuotaHolder } from "../../../../src/core/quota/quota.js";
import {
  assignedDeny,
  assignedRate,
  assignedTicket,
  QuotaHolders,
} from "../../../../src/core/quota/quota-holders.js";
import { confirmMs, QuotaLedger } from "../../../../src/core/quota/quota-ledger.js";
import { createParty } from "../../../../src/core/quota/quota-party.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { seedsFrom } from "../../../support/seeds.js";

const hz = 1_000_000;
const settings = { ttlMs: 10_000, burst: 100, rateMicroHzMax: 110 * hz };

describe("QuotaLedger", () => {
  it("counts a rate that was taken back until a report shows it", () => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 50 * hz, tokens: 2 }, 1_000);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 20 * hz, tokens: 2 }, 2_000);
    expect([ledger.heldMicroHz, ledger.assignedMicroHz]).toEqual([50 * hz, 20 * hz]);
    expect(ledger.confirm(holder)).toBe(true);
    expect(ledger.heldMicroHz).toBe(20 * hz);
    expect(ledger.confirm(holder)).toBe(false);
  });

  it("counts it until its time is over where none does", () => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 50 * hz, tokens: 2 }, 1_000);
    ledger.tell(holder, { assigned: assignedDeny }, 4_000);
    ledger.renew(holder, 9_000);
    expect(ledger.expire(holder, 11_999)).toBe(false);
    expect(ledger.heldMicroHz).toBe(50 * hz);
    expect(ledger.expire(holder, 12_000)).toBe(false);
    expect(ledger.heldMicroHz).toBe(0);
    expect(ledger.expire(holder, 20_000)).toBe(true);
  });

  it("counts a larger rate at once", () => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 20 * hz, tokens: 2 }, 1_000);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 50 * hz, tokens: 2 }, 1_000);
    expect(ledger.heldMicroHz).toBe(50 * hz);
  });

  it("pays for each full bucket, and for what one that follows another has more", () => {
    const { ledger, holder } = ledgerOf();
    const before = ledger.bankHits(2_000);
    const paid = (): number => before - ledger.bankHits(2_000);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 10 * hz, tokens: 4 }, 2_000);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 10 * hz, tokens: 4 }, 2_000);
    expect(paid()).toBe(4);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 5 * hz, tokens: 3 }, 2_000);
    expect(paid()).toBe(4);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 8 * hz, tokens: 5 }, 2_000);
    expect(paid()).toBe(6);
    ledger.tell(holder, { assigned: assignedDeny }, 2_000);
    ledger.tell(holder, { assigned: assignedTicket, tokens: 1 }, 2_000);
    expect(paid()).toBe(7);
  });

  it.each([
    { atMs: 9_000, cost: 1 },
    { atMs: 10_001, cost: 5 },
  ])("pays in full at $atMs ms where the bucket before may be over: $cost", ({ atMs, cost }) => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 10 * hz, tokens: 4 }, 1_000);
    expect(ledger.costOf(holder, 5, atMs)).toBe(cost);
  });

  it("fills its bank with what the lease has more than the rates, up to its size", () => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: 90 * hz, tokens: 20 }, 1_000);
    const before = ledger.bankHits(1_000);
    expect(ledger.bankHits(1_500)).toBeCloseTo(before + 5, 9);
    expect(ledger.bankHits(14_000)).toBe(ledger.bankHitsMax);
  });

  it("says a single hit differently each time, so that Envoy makes a new bucket", () => {
    const { ledger, holder } = ledgerOf();
    ledger.tell(holder, { assigned: assignedTicket, tokens: 1 }, 1_000);
    const first = ledger.assignment(holder, 10_000);
    ledger.tell(holder, { assigned: assignedTicket, tokens: 1 }, 2_000);
    expect(ledger.assignment(holder, 10_000)).not.toEqual(first);
  });

  it.each([
    { atMs: 1_000, ttlMs: 10_000 },
    { atMs: 7_500, ttlMs: 6_000 },
    { atMs: 12_000, ttlMs: 2_000 },
    { atMs: 12_001, ttlMs: undefined },
    { atMs: 20_000, ttlMs: undefined },
  ])("says nothing at $atMs ms that outlives its lease: $ttlMs", ({ atMs, ttlMs }) => {
    expect(ledgerOf().ledger.ttlMs(atMs)).toBe(ttlMs);
  });

  it.each(seedsFrom(1, 50))(
    "never hands out more than its lease brings, its bank and its tokens (seed %i)",
    (seed) => expect(envelopeOf(seed)).toBeLessThanOrEqual(1),
  );
});

function ledgerOf(): { readonly ledger: QuotaLedger; readonly holder: QuotaHolder } {
  const holders = new QuotaHolders({ holdersMax: 10 });
  const ledger = new QuotaLedger(holders, settings, 0);
  ledger.holderCount = 1;
  ledger.lease({ rateMicroHz: 100 * hz, untilMs: 15_000, elsewhere: [] }, 0);
  return { ledger, holder: added(holders) };
}

function added(holders: QuotaHolders): QuotaHolder {
  const holder = holders.add(createParty("fleet", 0));
  if (holder === undefined) throw new Error("no room");
  holders.reset(holder, 1, 0);
  return holder;
}

/** What a holder's Envoy has, and what is on its way to it: only what it was told last. */
interface AssignedEnvoy {
  hasBucket: boolean;
  untilMs: number;
  arrivesMs: number;
}

/**
 * Envoys that use all that they may, and are told anything that can be paid for, up to a second
 * late: the most that any interval had, as a part of what it may have.
 */
function envelopeOf(seed: number): number {
  const random = new FakeRandom(seed);
  const holders = new QuotaHolders();
  const ledger = new QuotaLedger(holders, settings, 0);
  const members = Array.from({ length: 1 + Math.floor(random.next() * 20) }, () => added(holders));
  const envoys = new Map<QuotaHolder, AssignedEnvoy>();
  ledger.holderCount = members.length;
  const leaseHz = 20 + random.next() * 80;
  const stepMs = 250;
  let level = 0;
  let worst = 0;
  for (let nowMs = 0; nowMs < 60_000; nowMs += stepMs) {
    ledger.lease(
      { rateMicroHz: Math.floor(leaseHz * hz), untilMs: nowMs + 15_000, elsewhere: [] },
      nowMs,
    );
    for (const holder of members) {
      const envoy = envoys.get(holder);
      if (random.next() < 0.1 && (envoy?.arrivesMs ?? 0) < nowMs) ledger.confirm(holder);
      ledger.expire(holder, nowMs);
      if (random.next() < 0.2 && tellAnything(ledger, holder, { random, nowMs })) {
        const { hasBucket = false, untilMs = 0 } = envoy ?? {};
        const arrivesMs = nowMs + stepMs * Math.floor(random.next() * 5);
        envoys.set(holder, { hasBucket, untilMs, arrivesMs });
      }
      level += arrived(envoys.get(holder), holders.tokens[holder] ?? 0, nowMs);
    }
    level += ((ledger.heldMicroHz / hz) * stepMs) / 1_000;
    level = Math.max(0, level - (leaseHz * stepMs) / 1_000);
    worst = Math.max(worst, level / (2 * ledger.bankHitsMax + 1));
  }
  return worst;
}

/** @returns the tokens that its Envoy has by what arrives now, and empties at once */
function arrived(envoy: AssignedEnvoy | undefined, tokens: number, nowMs: number): number {
  if (envoy?.arrivesMs !== nowMs) return 0;
  const isFull = !envoy.hasBucket || nowMs >= envoy.untilMs;
  envoy.hasBucket = tokens > 0;
  envoy.untilMs = nowMs + settings.ttlMs;
  return isFull ? tokens : 0;
}

function tellAnything(
  ledger: QuotaLedger,
  holder: QuotaHolder,
  { random, nowMs }: { readonly random: FakeRandom; readonly nowMs: number },
): boolean {
  const room = ledger.leaseMicroHz(nowMs) - ledger.heldMicroHz;
  const choice = random.next();
  if (choice < 0.2) ledger.tell(holder, { assigned: assignedDeny }, nowMs);
  else if (choice < 0.4) {
    if (!ledger.canPay(holder, 1, nowMs)) return false;
    ledger.tell(holder, { assigned: assignedTicket, tokens: 1 }, nowMs);
  } else {
    const rateMicroHz = Math.floor(room * random.next());
    const tokens = ledger.tokensOf(holder, rateMicroHz, nowMs);
    if (rateMicroHz < hz || !ledger.canPay(holder, tokens, nowMs)) return false;
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz, tokens }, nowMs);
  }
  return true;
}

describe("confirmMs", () => {
  it("is within what a report takes", () => expect(confirmMs).toBeLessThan(5_000));
});
