import { describe, expect, it } from "vitest";
import { navigation, RoomRig, saleRoom } from "../../../support/room-rig.js";

describe("the limit in front of joining", () => {
  it("holds against joins from one address, whatever else they say", async () => {
    const per = { kind: "remoteAddress" } as const;
    const joinLimit = { per, requests: 60, periodSeconds: 60, burst: 10 };
    const rig = new RoomRig([saleRoom({ joinLimit })]);
    await rig.flood(2_000, 50);
    // Just below two seconds have passed: the burst, and one of a second.
    expect(rig.line.nextNumber).toBe(11);
    expect(rig.count("joinLimited")).toBe(2_000 - 11);
  });

  it("tells callers apart by a header where the policy says so", async () => {
    const per = { kind: "header", header: "x-user" } as const;
    const joinLimit = { per, requests: 1, periodSeconds: 60, burst: 1 };
    const rig = new RoomRig([saleRoom({ joinLimit })]);
    const joins = async (user: string): Promise<boolean> => {
      const visit = rig.ask({ user, headers: navigation });
      await rig.settle();
      return visit.shown === "waiting";
    };
    expect([await joins("a"), await joins("a"), await joins("b")]).toEqual([true, false, true]);
    expect(rig.rooms.requestHeaderNames.has("x-user")).toBe(true);
  });

  it("is no limit of a caller, and needs no domain of the policy", () => {
    const joinLimit = {
      per: { kind: "remoteAddress" } as const,
      requests: 1,
      periodSeconds: 60,
      burst: 1,
    };
    const rig = new RoomRig([saleRoom({ joinLimit })]);
    rig.browse();
    expect(rig.decider.areLimitsCarried).toBe(false);
    expect(rig.counters.unknownDomainCount).toBe(0);
  });
});
