import { describe, expect, it } from "vitest";
import { LearnedShare } from "../../../../src/core/admission/learned-share.js";
import type { PermitHolder, PermitShare } from "../../../../src/core/admission/permit-share.js";

/** What the store grants; a test changes it. */
class Granted implements PermitShare {
  count = 0;
  permits(): number {
    return this.count;
  }
  othersInUse(): number {
    return 7;
  }
  isLeased(): boolean {
    return true;
  }
  close(): void {}
}

function rig() {
  const granted = new Granted();
  const starts: number[] = [];
  const law = { limit: 20, startFrom: (limit: number) => starts.push(limit) };
  let holder: PermitHolder | undefined;
  let inUseCount = 0;
  const share = new LearnedShare({
    name: "orders",
    law,
    inUseCount: () => inUseCount,
    onGrown: () => {},
    shares: {
      open: (opened) => {
        holder = opened;
        return granted;
      },
    },
  });
  if (holder === undefined) throw new Error("it was not opened");
  const take = (): void => {
    inUseCount += 1;
    share.noteTaken();
  };
  return { share, holder, granted, law, starts, take };
}

describe("LearnedShare", () => {
  it("says nothing of a limit that it has only begun with, and starts from that of others", () => {
    const { holder, starts, law } = rig();
    expect(holder.fleetLimit()).toBeGreaterThan(1_000_000);
    holder.agreed?.(12);
    expect(starts).toEqual([12]);
    expect(holder.fleetLimit()).toBe(20);
    law.limit = 15;
    holder.agreed?.(14);
    expect(starts).toEqual([12]);
    expect(holder.fleetLimit()).toBe(15);
  });

  it("starts by itself where nobody has learned anything", () => {
    const { holder, starts } = rig();
    holder.agreed?.(holder.fleetLimit());
    expect(starts).toEqual([]);
  });

  it("has its part of the limit, never more, and never none", () => {
    const { share, granted } = rig();
    expect(share.permits(0)).toBe(1);
    granted.count = 8;
    expect(share.permits(0)).toBe(8);
    granted.count = 30;
    expect(share.permits(0)).toBe(20);
    expect(share.othersInUse(0)).toBe(7);
  });

  it("needs what it had in use in the mean, and what it refused since it said so last", () => {
    const { share, holder, take } = rig();
    for (let i = 0; i < 16; i += 1) take();
    share.noteRefused();
    share.noteRefused();
    const demand = holder.takeDemand();
    expect(demand).toBeGreaterThan(4);
    expect(demand).toBeLessThan(16);
    expect(holder.takeDemand()).toBe(16);
  });
});
