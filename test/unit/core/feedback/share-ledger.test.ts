import { describe, expect, it } from "vitest";
import { type ShareEntry, ShareLedger } from "../../../../src/core/feedback/share-ledger.js";

const times = { ttlMs: 15_000, snapshotSpreadMs: 2_000, obeyMsMax: 5_000 };

const configuredShare = 30;

/** A ledger, and a clock that moves by hand. */
class Rig {
  readonly ledger = new ShareLedger({ times, configuredShare });
  nowMs = 0;

  /** @returns what those have who have a target */
  grant(
    targets: Readonly<Record<string, number>>,
    bound = 100,
    more: { readonly byDefaultMost?: number; readonly reserved?: Record<string, number> } = {},
  ): Readonly<Record<string, number>> {
    const { reserved = {}, ...rest } = more;
    const wants = Object.entries(targets).map(([nodeId, target]) => {
      const entry = this.ledger.open(nodeId, this.nowMs);
      return { entry, target, reserved: reserved[nodeId] };
    });
    this.ledger.grant({ wants, bound, ...rest }, this.nowMs);
    return Object.fromEntries(Object.keys(targets).map((id) => [id, this.at(id).share]));
  }

  /** One that has a share. */
  at(nodeId: string): ShareEntry {
    const entry = this.ledger.find(nodeId);
    if (entry === undefined) throw new Error(`${nodeId} never had a share`);
    return entry;
  }

  /** All of them say that they hold so much. */
  hold(held: Readonly<Record<string, number>>, atMs = this.nowMs): void {
    for (const [nodeId, count] of Object.entries(held)) {
      const entry = this.ledger.find(nodeId);
      if (entry !== undefined) this.ledger.noteHeld(entry, count, atMs);
    }
  }

  pass(ms: number): void {
    this.nowMs += ms;
  }
}

/** Two Envoys that have taken a half each. */
function halves(): Rig {
  const rig = new Rig();
  rig.grant({ a: 50, b: 50 });
  rig.pass(2_000);
  rig.hold({ a: 50, b: 50 });
  return rig;
}

describe("ShareLedger", () => {
  it("gives all at once where nobody has anything", () => {
    expect(new Rig().grant({ a: 60, b: 40 })).toEqual({ a: 60, b: 40 });
  });

  it("gives a newcomer at once what is no more than its default", () => {
    expect(halves().grant({ a: 45, b: 45, c: 10 })).toEqual({ a: 45, b: 45, c: 10 });
  });

  it("lets a newcomer wait at its default until others are known to have given up theirs", () => {
    const rig = halves();
    expect(rig.grant({ a: 20, b: 20, c: 60 })).toEqual({ a: 20, b: 20, c: 30 });
    rig.pass(1_000);
    rig.hold({ a: 20, b: 20, c: 30 });
    expect(rig.grant({ a: 20, b: 20, c: 60 })).toEqual({ a: 20, b: 20, c: 30 });
    rig.pass(1_000);
    rig.hold({ a: 20 });
    // Of the hundred the other one may still hold its 50.
    expect(rig.grant({ a: 20, b: 20, c: 60 })).toEqual({ a: 20, b: 20, c: 30 });
    rig.hold({ b: 20 });
    expect(rig.grant({ a: 20, b: 20, c: 60 })).toEqual({ a: 20, b: 20, c: 60 });
  });

  it("lets others wait till a newcomer's default is gone", () => {
    const rig = halves();
    rig.grant({ a: 40, b: 40, c: 10 });
    rig.pass(2_000);
    rig.hold({ a: 40, b: 40, c: configuredShare });
    expect(rig.grant({ a: 50, b: 40, c: 10 })).toEqual({ a: 40, b: 40, c: 10 });
    rig.pass(1);
    rig.hold({ c: 10 });
    expect(rig.grant({ a: 50, b: 40, c: 10 })).toEqual({ a: 50, b: 40, c: 10 });
  });

  it("takes no word that is as old as the share which was taken back", () => {
    const rig = halves();
    rig.grant({ a: 10, b: 50 });
    rig.pass(3_000);
    rig.hold({ a: 10 }, rig.nowMs - 1_001);
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs)).toBe(50);
    rig.hold({ a: 10 }, rig.nowMs - 1_000);
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs)).toBe(10);
    rig.hold({ a: 99 }, rig.nowMs - 1_002);
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs)).toBe(10);
  });

  it("counts the configured default where nothing may have been renewed", () => {
    const rig = new Rig();
    rig.grant({ a: 10 });
    expect(rig.ledger.mayHold(rig.at("a"), 60_000)).toBe(10);
    rig.pass(2_000);
    rig.hold({ a: 10 });
    expect(rig.ledger.mayHold(rig.at("a"), 9_499)).toBe(10);
    expect(rig.ledger.mayHold(rig.at("a"), 9_500)).toBe(configuredShare);
    rig.pass(8_000);
    rig.hold({ a: 10 });
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs)).toBe(10);
  });

  it("counts what was taken back until its time is up, where nobody says a word", () => {
    const rig = halves();
    rig.grant({ a: 10, b: 50 });
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs + 16_999)).toBe(50);
    expect(rig.ledger.mayHold(rig.at("a"), rig.nowMs + 17_000)).toBe(configuredShare);
  });

  it("has no room after a change of leaders before everybody has told, or has run out", () => {
    const rig = new Rig();
    rig.ledger.restore("a", 10, 0);
    rig.ledger.restore("b", 10, 0);
    expect(rig.grant({ a: 50, b: 50 })).toEqual({ a: 10, b: 10 });
    rig.pass(2_000);
    rig.hold({ a: 10 });
    expect(rig.grant({ a: 50, b: 50 })).toEqual({ a: 10, b: 10 });
    rig.pass(14_999);
    rig.hold({ a: 10 });
    expect(rig.grant({ a: 50, b: 50 })).toEqual({ a: 10, b: 10 });
    rig.pass(1);
    // Of the hundred one holds 10, and the other 30 by default: 60 are left, half for each.
    expect(rig.grant({ a: 50, b: 50 })).toEqual({ a: 40, b: 40 });
  });

  it("gives back after a change of leaders what was taken, to those who have told", () => {
    const rig = new Rig();
    rig.ledger.restore("a", 30, 0);
    rig.ledger.restore("b", 30, 0);
    rig.ledger.restore("gone", 40, 0);
    rig.grant({ a: 5, b: 5, gone: 40 });
    rig.pass(2_000);
    rig.hold({ a: 5 });
    // All that "a" had, for both; of the other two nobody knows what it was before.
    expect(rig.grant({ a: 50, b: 10, gone: 40 })).toEqual({ a: 25, b: 10, gone: 40 });
    rig.pass(1);
    rig.hold({ b: 10 });
    // All that both had, and not what is free since "gone" should have 30.
    expect(rig.grant({ a: 60, b: 10, gone: 30 })).toEqual({ a: 50, b: 10, gone: 30 });
    rig.pass(17_000);
    rig.hold({ a: 50, b: 10 });
    // By now it goes by its default.
    expect(rig.grant({ a: 60, b: 10, gone: 30 })).toEqual({ a: 60, b: 10, gone: 30 });
  });

  it("counts what it has given and taken back itself beside what somebody may have had", () => {
    const rig = new Rig();
    rig.ledger.restore("a", 30, 0);
    rig.ledger.restore("b", 30, 0);
    rig.pass(2_000);
    rig.hold({ a: 30 });
    rig.grant({ a: 20, b: 30 });
    rig.pass(2_000);
    rig.hold({ a: 20 });
    expect(rig.grant({ a: 20, b: 40 })).toEqual({ a: 20, b: 40 });
    rig.pass(1_000);
    rig.grant({ a: 20, b: 30 });
    // Nobody has heard that it has given up the ten again.
    expect(rig.grant({ a: 30, b: 30 })).toEqual({ a: 20, b: 30 });
  });

  it("counts no more of a default that may be active than it is told to", () => {
    const rig = halves();
    rig.grant({ a: 20, b: 50 });
    rig.pass(2_000);
    rig.hold({ a: 20 });
    rig.pass(7_500);
    rig.hold({ a: 20 });
    const regrow = (byDefaultMost?: number) =>
      rig.grant({ a: 45, b: 15 }, 60, byDefaultMost === undefined ? {} : { byDefaultMost });
    rig.grant({ a: 20, b: 15 }, 60);
    rig.pass(17_000);
    rig.hold({ a: 20 });
    expect(rig.ledger.mayHold(rig.at("b"), rig.nowMs)).toBe(configuredShare);
    expect(regrow()).toEqual({ a: 30, b: 15 });
    expect(regrow(20)).toEqual({ a: 40, b: 15 });
    expect(regrow(1)).toEqual({ a: 45, b: 15 });
  });

  it("leaves shares alone that are about right, unless all together are too much", () => {
    const rig = halves();
    expect(rig.grant({ a: 54, b: 46 })).toEqual({ a: 50, b: 50 });
    expect(rig.grant({ a: 46, b: 44 }, 90)).toEqual({ a: 46, b: 44 });
  });

  it("holds for unruly who has more than its share for long, or went out of hearing", () => {
    const rig = halves();
    rig.grant({ a: 10, b: 50 });
    rig.pass(1_000);
    rig.hold({ a: 50 });
    rig.pass(4_999);
    rig.hold({ a: 50 });
    expect(rig.ledger.isUnruly(rig.at("a"), rig.nowMs)).toBe(false);
    rig.pass(1);
    rig.hold({ a: 50 });
    expect(rig.ledger.isUnruly(rig.at("a"), rig.nowMs)).toBe(true);
    rig.pass(1);
    rig.hold({ a: 10 });
    expect(rig.ledger.isUnruly(rig.at("a"), rig.nowMs)).toBe(false);
    expect(rig.ledger.isUnruly(rig.at("a"), rig.nowMs + 14_999)).toBe(false);
    expect(rig.ledger.isUnruly(rig.at("a"), rig.nowMs + 15_000)).toBe(true);
    // The other one's default is less than its share: that is what counts.
    expect(rig.ledger.isUnruly(rig.at("b"), rig.nowMs + 60_000)).toBe(false);
  });

  it("gives what is set aside for the unruly to nobody", () => {
    const rig = halves();
    rig.hold({ b: 1_000 }, rig.nowMs + 1);
    rig.pass(5_000);
    rig.hold({ a: 50, b: 1_000 });
    expect(rig.grant({ a: 70, b: 30 }, 100, { reserved: { b: 40 } })).toEqual({ a: 60, b: 30 });
  });

  it("says since when all have taken what they were given", () => {
    const rig = halves();
    expect(rig.ledger.obeyedSinceMs(5_000, rig.nowMs)).toBe(2_000);
    rig.grant({ a: 10, b: 10 });
    expect(rig.ledger.obeyedSinceMs(5_000, rig.nowMs)).toBeUndefined();
    rig.pass(1_000);
    rig.hold({ a: 10 });
    expect(rig.ledger.obeyedSinceMs(5_000, rig.nowMs)).toBeUndefined();
    rig.pass(1_000);
    rig.hold({ b: 10 });
    expect(rig.ledger.obeyedSinceMs(5_000, rig.nowMs)).toBe(4_000);
    rig.grant({ a: 5, b: 10 });
    rig.pass(6_000);
    rig.hold({ b: 10 });
    expect(rig.ledger.obeyedSinceMs(5_000, rig.nowMs)).toBe(4_000);
  });

  it("counts who is left out by its default, and not at all once it is forgotten", () => {
    const rig = new Rig();
    rig.grant({ a: 10 });
    rig.ledger.leaveOut(rig.at("a"), 0);
    expect(rig.ledger.total(0)).toBe(configuredShare);
    rig.ledger.forget("a");
    expect([rig.ledger.total(0), rig.ledger.find("a")]).toEqual([0, undefined]);
  });

  it("refuses targets that are no shares, or more than there is", () => {
    expect(() => new Rig().grant({ a: 0 })).toThrow("no share");
    expect(() => new Rig().grant({ a: 60, b: 60 })).toThrow("above their bound");
  });
});
