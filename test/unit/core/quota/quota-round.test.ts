import { describe, expect, it } from "vitest";
import type { QuotaChange, QuotaHolder } from "../../../../src/core/quota/quota.js";
import {
  assignedDeny,
  assignedRate,
  assignedTicket,
  QuotaHolders,
} from "../../../../src/core/quota/quota-holders.js";
import { QuotaLedger } from "../../../../src/core/quota/quota-ledger.js";
import { createParty } from "../../../../src/core/quota/quota-party.js";
import { fitMicroHz, QuotaRound, wantedMicroHz } from "../../../../src/core/quota/quota-round.js";

const hz = 1_000_000;

function added(holders: QuotaHolders): QuotaHolder {
  const holder = holders.add(createParty("fleet", 0));
  if (holder === undefined) throw new Error("no room");
  holders.reset(holder, 1, 0);
  return holder;
}

/** Somebody who has told what it asks for, and was denied some of it. */
function hungry(holders: QuotaHolders, demandMicroHz: number): QuotaHolder {
  const holder = added(holders);
  holders.isMeasured[holder] = 1;
  holders.isHungry[holder] = 1;
  holders.demand[holder] = demandMicroHz;
  return holder;
}

interface Division {
  readonly holders: QuotaHolders;
  readonly ledger: QuotaLedger;
  readonly members: readonly QuotaHolder[];
}

function divide({ holders, ledger, members }: Division, nowMs: number): readonly QuotaChange[] {
  ledger.holderCount = members.length;
  const evenMicroHz = ledger.leaseMicroHz(nowMs) / members.length;
  const wants = { demandMicroHzMax: 110 * hz, evenMicroHz };
  const newcomers = { evenMicroHz, hasRoom: false };
  return new QuotaRound({ holders, ledger, members, start: 0, wants, newcomers, nowMs }).run();
}

describe("QuotaRound", () => {
  /** One who has a share of 100 hits a second, with a small bucket, and wants all there is. */
  function shareOf(hadMicroHz: number): Division & { readonly holder: QuotaHolder } {
    const holders = new QuotaHolders();
    const settings = { ttlMs: 10_000, burst: 100, rateMicroHzMax: 110 * hz };
    const ledger = new QuotaLedger(holders, settings, 0);
    ledger.lease({ rateMicroHz: 100 * hz, untilMs: 1_000_000, elsewhere: [] }, 0);
    const holder = hungry(holders, 200 * hz);
    ledger.tell(holder, { assigned: assignedRate, rateMicroHz: hadMicroHz, tokens: 2 }, 0);
    return { holders, ledger, members: [holder], holder };
  }

  it.each([
    { title: "as many hits as its tokens cost", had: 90, spent: 25, atMs: 5_000, isTold: true },
    { title: "fewer hits than they cost", had: 96.5, spent: 25, atMs: 5_000, isTold: false },
    { title: "few hits, and its bank is full", had: 98.5, spent: 0, atMs: 5_000, isTold: true },
    { title: "next to nothing", had: 99.7, spent: 0, atMs: 5_000, isTold: false },
    { title: "less than a tenth at once", had: 94, spent: 0, atMs: 3_000, isTold: false },
    { title: "more than a tenth at once", had: 85, spent: 0, atMs: 3_000, isTold: true },
  ])("makes a change that moves $title: $isTold", ({ had, spent, atMs, isTold }) => {
    const division = shareOf(had * hz);
    const { ledger, holders } = division;
    if (spent > 0) ledger.tell(added(holders), { assigned: assignedTicket, tokens: spent }, atMs);
    expect(divide(division, atMs)).toHaveLength(isTold ? 1 : 0);
  });

  it("aims at a twentieth of an even share for who asks for nothing", () => {
    const division = shareOf(40 * hz);
    const { holders, ledger, holder } = division;
    const idle = hungry(holders, 0);
    divide({ holders, ledger, members: [holder, idle] }, 5_000);
    expect(holders.target[idle]).toBe(2.5 * hz);
  });

  it.each([
    { title: "who asks for more", isHungry: 1, atMs: 1_900, assigned: assignedTicket },
    {
      title: "who does not, from less than half a bank",
      isHungry: 0,
      atMs: 1_900,
      assigned: assignedDeny,
    },
    { title: "who does not, from more", isHungry: 0, atMs: 3_000, assigned: assignedTicket },
  ])("gives a single hit, or none, to $title", ({ isHungry, atMs, assigned }) => {
    const holders = new QuotaHolders();
    const ledger = new QuotaLedger(holders, { ttlMs: 10_000, burst: 2, rateMicroHzMax: hz }, 0);
    ledger.holderCount = 1;
    ledger.lease({ rateMicroHz: hz / 2, untilMs: 1_000_000, elsewhere: [] }, 0);
    const holder = hungry(holders, hz / 10);
    holders.isHungry[holder] = isHungry;
    divide({ holders, ledger, members: [holder] }, atMs);
    expect(holders.assigned[holder]).toBe(assigned);
  });

  it("hands out no more single hits than may wait unused", () => {
    const holders = new QuotaHolders();
    const ledger = new QuotaLedger(
      holders,
      { ttlMs: 10_000, burst: 2, rateMicroHzMax: hz / 10 },
      0,
    );
    ledger.lease({ rateMicroHz: hz / 20, untilMs: 1_000_000, elsewhere: [] }, 0);
    const members = [hungry(holders, hz), hungry(holders, hz), hungry(holders, hz)];
    const assigned = () => members.map((holder) => holders.assigned[holder]);
    divide({ holders, ledger, members }, 100_000);
    expect([ledger.tokensMax, assigned()]).toEqual([
      2,
      [assignedTicket, assignedTicket, assignedDeny],
    ]);
    // The bank is full again, and nobody has told that it used its hit.
    expect(divide({ holders, ledger, members }, 200_000)).toEqual([]);
    const [first] = members;
    if (first !== undefined) holders.isSpent[first] = 1;
    divide({ holders, ledger, members }, 200_000);
    divide({ holders, ledger, members }, 200_250);
    expect(assigned()).toEqual([assignedDeny, assignedTicket, assignedTicket]);
  });
});

describe("wantedMicroHz()", () => {
  const terms = { demandMicroHzMax: 50 * hz, evenMicroHz: 7 * hz };

  it.each([
    { title: "is denied, and has much less", isHungry: 1, demand: 20, had: 17, wanted: 22 },
    { title: "is denied by chance", isHungry: 1, demand: 20, had: 18, wanted: 20.4 },
    { title: "has what it asks for", isHungry: 0, demand: 20, had: 10, wanted: 20.4 },
    { title: "has a little more", isHungry: 0, demand: 20, had: 20.6, wanted: 20.6 },
    { title: "has more than a little more", isHungry: 0, demand: 20, had: 20.9, wanted: 20.4 },
    { title: "asks for more than there may be", isHungry: 0, demand: 500, had: 0, wanted: 51 },
  ])("is $wanted hits a second for who $title", ({ isHungry, demand, had, wanted }) => {
    const holders = new QuotaHolders();
    const holder = hungry(holders, demand * hz);
    holders.isHungry[holder] = isHungry;
    holders.rate[holder] = had * hz;
    expect(wantedMicroHz(holders, holder, terms) / hz).toBeCloseTo(wanted, 6);
  });

  it("is an even share, by its weight, for who has not told it yet", () => {
    const holders = new QuotaHolders();
    const holder = hungry(holders, 500 * hz);
    holders.isMeasured[holder] = 0;
    holders.weight[holder] = 3;
    expect(wantedMicroHz(holders, holder, terms)).toBe(21 * hz);
  });
});

describe("fitMicroHz()", () => {
  it.each([
    { title: "somebody new", fit: 2 },
    { title: "somebody new of a weight of 3", weight: 3, fit: 6 },
    { title: "who has waited for two reports", nowMs: 12_000, fit: 0 },
    { title: "who has waited almost as long", nowMs: 11_999, fit: 2 },
    { title: "who was told something", assigned: assignedDeny, fit: 0 },
    { title: "anybody where others ask for all", hasRoom: false, fit: 0 },
    { title: "anybody where that is less than a hit a second", even: 3.9, fit: 0 },
  ])("is $fit hits a second for $title", (row) => {
    const { nowMs = 0, weight = 1, hasRoom = true, even = 8, assigned = 0, fit } = row;
    const holders = new QuotaHolders();
    const holder = added(holders);
    holders.weight[holder] = weight;
    holders.assigned[holder] = assigned;
    const newcomers = { evenMicroHz: even * hz, hasRoom };
    expect(fitMicroHz(holders, holder, { newcomers, nowMs })).toBe(fit * hz);
  });
});
