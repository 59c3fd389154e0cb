import { describe, expect, it } from "vitest";
import type { RoomMode } from "../../../../src/core/waiting-room/room-line.js";
import { navigation, RoomRig, saleRoom, testKey, testStatus } from "../../../support/room-rig.js";

describe("RoomDoor: entering", () => {
  it("lets the first visitors in while sessions are free, and knows them by their cookie", () => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const first = rig.browse();
    expect(first.shown).toBe("admitted");
    expect(first.cookie).toMatch(/^headgate-sale=[A-Za-z0-9_-]{48}$/);
    const again = rig.browse(first.cookie);
    expect([again.shown, again.cookie]).toEqual(["admitted", undefined]);
    expect([rig.count("entered"), rig.count("session")]).toEqual([1, 1]);
  });

  it("keeps the others at their place, which a reload and a second tab do not change", () => {
    const rig = new RoomRig();
    const liveAtFront = Uint8Array.of(0b111);
    rig.line.status = testStatus({ nextNumber: 3, liveByBlock: [3], liveAtFront });
    rig.line.nextNumber = 3;
    const joined = rig.browse();
    expect(joined.shown).toBe("waiting");
    expect(joined.page.status).toBe(200);
    expect(joined.page.body).toContain('data-field="position">4<');
    rig.line.nowSecond = 110;
    const again = rig.browse(joined.cookie);
    expect(again.page.body).toContain('data-field="position">4<');
    expect(again.cookie).toBeUndefined();
    expect(rig.line.visited).toEqual([3]);
    expect([rig.count("joined"), rig.count("waiting")]).toEqual([1, 1]);
  });

  it("lets a called visitor in with a session that lasts from its entrance", () => {
    const rig = new RoomRig();
    const { cookie } = rig.browse();
    rig.line.nowSecond = 200;
    rig.line.entries.set(0, { kind: "entered", session: 5, usedSecond: 160 });
    const entered = rig.browse(cookie);
    expect(entered.shown).toBe("admitted");
    rig.line.nowSecond = 200 + 60;
    expect(rig.browse(entered.cookie).shown).toBe("admitted");
    expect(rig.line.renewed).toEqual([]);
    rig.line.nowSecond = 160 + 601;
    rig.line.spareCount = 0;
    expect(rig.browse(entered.cookie).shown).toBe("waiting");
  });

  it("gives the same session to the same ticket again", () => {
    const rig = new RoomRig();
    const { cookie } = rig.browse();
    rig.line.nowSecond = 200;
    rig.line.entries.set(0, { kind: "entered", session: 5, usedSecond: 160 });
    expect(rig.browse(cookie).cookie).toBe(rig.browse(cookie).cookie);
    expect(rig.door.counts.waits.endedCount).toBe(1);
  });

  it("counts whether the range that a visitor was told held", () => {
    const rig = new RoomRig();
    rig.line.status = testStatus({ waitingCount: 10, liveByBlock: [10], nextNumber: 10 });
    rig.line.nextNumber = 10;
    const { cookie } = rig.browse();
    rig.line.nowSecond = 100 + 20;
    rig.line.entries.set(10, { kind: "entered", session: 5, usedSecond: 120 });
    rig.browse(cookie);
    expect(rig.door.counts.waits).toMatchObject({
      endedCount: 1,
      inRangeCount: 1,
      actualSeconds: 20,
    });
    expect(rig.line.heldWaits).toEqual([true]);
  });

  it("lets a visitor join again whose place or line is gone", () => {
    const rig = new RoomRig();
    const { cookie } = rig.browse();
    rig.line.entries.set(0, { kind: "gone" });
    rig.line.nowSecond = 300;
    const again = rig.browse(cookie);
    expect(again.shown).toBe("waiting");
    expect(again.cookie).not.toBe(cookie);
    rig.line.status = testStatus({ lineId: 8 });
    expect(rig.browse(again.cookie).cookie).toBeDefined();
    expect(rig.line.visited).toEqual([0]);
    expect(rig.count("joined")).toBe(3);
  });

  it("asks the store once in a while for a ticket that comes all the time", () => {
    const rig = new RoomRig();
    rig.line.status = testStatus({ nextNumber: 1, liveByBlock: [1] });
    const { cookie } = rig.browse();
    for (let i = 0; i < 10; i += 1) rig.browse(cookie);
    expect(rig.line.visited).toEqual([0]);
    rig.line.nowSecond = 106;
    rig.browse(cookie);
    expect(rig.line.visited).toEqual([0, 0]);
    rig.line.status = testStatus({ nextNumber: 1, calledPlace: 1 });
    rig.browse(cookie);
    expect(rig.line.visited).toEqual([0, 0, 0]);
  });
});

describe("RoomDoor: sessions", () => {
  function inside(): { readonly rig: RoomRig; readonly cookie: string | undefined } {
    const rig = new RoomRig([saleRoom({ sessionMs: 100_000 })]);
    rig.line.spareCount = 1;
    return { rig, cookie: rig.browse().cookie };
  }

  it("renews a session when a quarter of its length has passed", () => {
    const { rig, cookie } = inside();
    rig.line.nowSecond = 124;
    expect(rig.browse(cookie).cookie).toBeUndefined();
    rig.line.nowSecond = 126;
    const renewed = rig.browse(cookie);
    expect(renewed.shown).toBe("admitted");
    expect(rig.line.renewed).toMatchObject([{ number: 0, session: 1_000 }]);
    rig.line.nowSecond = 100 + 110;
    expect(rig.browse(renewed.cookie).shown).toBe("admitted");
  });

  it("asks the store once for requests that come together, and gives each the new cookie", () => {
    const { rig, cookie } = inside();
    rig.line.nowSecond = 130;
    const first = rig.browse(cookie);
    const second = rig.browse(cookie);
    expect(rig.line.renewed).toHaveLength(1);
    expect(second.cookie).toBe(first.cookie);
  });

  it("sends a visitor to the line whose session somebody else has now", () => {
    const { rig, cookie } = inside();
    rig.line.nowSecond = 150;
    rig.line.entries.set(0, { kind: "gone" });
    expect(rig.browse(cookie).shown).toBe("waiting");
  });

  it("ends with its line, as when the store has lost it", () => {
    const { rig, cookie } = inside();
    rig.line.status = testStatus({ lineId: 8 });
    expect(rig.browse(cookie).shown).toBe("waiting");
    expect(rig.line.renewed).toEqual([]);
  });

  it("never makes a session longer where the policy does not renew", () => {
    const rig = new RoomRig([saleRoom({ sessionMs: 100_000, renews: false })]);
    rig.line.spareCount = 1;
    const { cookie } = rig.browse();
    rig.line.nowSecond = 199;
    expect(rig.browse(cookie)).toMatchObject({ shown: "admitted", cookie: undefined });
    rig.line.nowSecond = 200;
    expect(rig.browse(cookie).shown).toBe("waiting");
    expect(rig.line.renewed).toEqual([]);
  });

  it("sets the cookie of an entrance even where admission refuses the request", () => {
    const rig = new RoomRig([saleRoom()], { maxInFlight: 1 });
    rig.line.spareCount = 2;
    rig.browse();
    const refused = rig.browse();
    expect(refused.shown).toBe("concurrency");
    expect(refused.cookie).toMatch(/^headgate-sale=/);
  });
});

describe("RoomDoor: who may join", () => {
  it.each<{ it: string; status: Parameters<typeof testStatus>[0]; draw: number; shown: string }>([
    { it: "nobody while it drains", status: { mode: "draining" }, draw: 0.9, shown: "full" },
    { it: "a share by the wait", status: { rejectRatio: 0.6 }, draw: 0.5, shown: "full" },
    { it: "the rest by the wait", status: { rejectRatio: 0.6 }, draw: 0.7, shown: "waiting" },
    { it: "all while it is paused", status: { mode: "paused" }, draw: 0.5, shown: "paused" },
    { it: "all before an event", status: { phase: "preQueue" }, draw: 0.5, shown: "pre_queue" },
  ])("takes $it", ({ status, draw, shown }) => {
    const rig = new RoomRig();
    rig.line.status = testStatus(status);
    rig.draw = draw;
    expect(rig.browse().shown).toBe(shown);
  });

  it.each<RoomMode>(["draining", "paused"])("keeps sessions and places while it is %s", (mode) => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const inside = rig.browse().cookie;
    const waiting = rig.browse().cookie;
    rig.line.status = testStatus({ mode, nextNumber: 2 });
    rig.line.nowSecond = 110;
    expect(rig.browse(inside).shown).toBe("admitted");
    expect(rig.browse(waiting).shown).toBe(mode === "paused" ? "paused" : "waiting");
  });

  it("turns away whom the line has no room for, without a ticket", () => {
    const rig = new RoomRig();
    rig.line.isFull = true;
    const away = rig.browse();
    expect([away.shown, away.cookie]).toEqual(["full", undefined]);
    expect(Number(away.header("retry-after"))).toBe(60);
  });

  it("lets all pass by `order: passthrough`", () => {
    const rig = new RoomRig([saleRoom({ order: "passthrough" })]);
    expect(rig.browse().shown).toBe("admitted");
    expect(rig.count("bypassed")).toBe(1);
  });

  it("holds the joins of one address to the limit, whatever else a request says", async () => {
    const per = { kind: "remoteAddress" } as const;
    const joinLimit = { per, requests: 1, periodSeconds: 60, burst: 5 };
    const rig = new RoomRig([saleRoom({ joinLimit })]);
    const joinedOf = async (sources: readonly string[]): Promise<number> => {
      let count = 0;
      for (const source of sources) {
        const visit = rig.ask({ headers: navigation, attributes: { "source.address": source } });
        await rig.settle();
        if (visit.shown === "waiting") count += 1;
      }
      return count;
    };
    const ports = Array.from({ length: 2_000 }, (_, i) => `192.0.2.7:${1_000 + i}`);
    expect(await joinedOf(ports)).toBe(5);
    expect(rig.count("joinLimited")).toBe(1_995);
    expect(rig.line.nextNumber).toBe(5);
    expect(await joinedOf(["192.0.2.8:1000"])).toBe(1);
    const ofOneNetwork = Array.from({ length: 8 }, (_, i) => `[2001:db8::${i + 1}]:1000`);
    expect(await joinedOf(ofOneNetwork)).toBe(5);
  });
});

describe("RoomDoor: without the store", () => {
  it.each([
    { mode: "keep", session: "admitted", place: "waiting", stranger: "unavailable" },
    { mode: "open", session: "admitted", place: "admitted", stranger: "admitted" },
    { mode: "close", session: "unavailable", place: "waiting", stranger: "unavailable" },
  ] as const)("does as onStoreFailure $mode says", ({ mode, session, place, stranger }) => {
    const rig = new RoomRig([saleRoom({ onStoreFailure: mode })]);
    rig.line.spareCount = 1;
    const inside = rig.browse().cookie;
    const waiting = rig.browse().cookie;
    rig.line.isReachable = false;
    rig.line.nowSecond = 400;
    expect(
      [rig.browse(inside), rig.browse(waiting), rig.browse()].map(({ shown }) => shown),
    ).toEqual([session, place, stranger]);
    rig.line.isReachable = true;
    rig.line.isFailing = true;
    expect([rig.browse(waiting).shown, rig.browse().shown]).toEqual([place, stranger]);
  });

  it.each([
    { mode: "keep", session: "admitted" },
    { mode: "open", session: "admitted" },
    { mode: "close", session: "unavailable" },
  ] as const)("goes by $mode for a session of before a restart", ({ mode, session }) => {
    const rig = new RoomRig([saleRoom({ onStoreFailure: mode })]);
    rig.line.spareCount = 1;
    const { cookie } = rig.browse();
    // The store has not answered this process yet.
    rig.line.status = undefined;
    expect(rig.browse(cookie).shown).toBe(session);
  });

  it("ends sessions at their time all the same", () => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const { cookie } = rig.browse();
    rig.line.isReachable = false;
    rig.line.nowSecond = 701;
    expect(rig.browse(cookie).shown).toBe("unavailable");
  });

  it("gives no place before a key and the state of the line are known", () => {
    const rig = new RoomRig();
    rig.keys = [];
    expect(rig.browse()).toMatchObject({ shown: "unavailable", cookie: undefined });
    rig.keys = [testKey("first")];
    rig.line.status = undefined;
    expect(rig.browse().shown).toBe("unavailable");
    expect(rig.line.nextNumber).toBe(0);
  });
});

describe("RoomDoor: the gate", () => {
  it("turns a share away at Envoys by the reject ratio, and opens step by step", () => {
    const gate = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    const rig = new RoomRig([saleRoom({ gate })]);
    const percents = (ratios: readonly number[]) =>
      ratios.map((rejectRatio) => {
        rig.line.status = testStatus({ rejectRatio });
        rig.door.tick();
        return Math.round(100 * rig.door.gateRejectRatio);
      });
    expect(percents([0.3, 0.6, 0.9, 0, 0, 0])).toEqual([0, 45, 100, 52, 9, 0]);
    rig.gateSettings = { ...gate, openBelowRatio: 0, passAtCloseRatio: 0 };
    expect(percents([0.4])).toEqual([50]);
    rig.line.isReachable = false;
    expect(percents([0.4, 0.4])).toEqual([35, 25]);
  });

  it("turns nobody away where the policy has none", () => {
    const rig = new RoomRig();
    rig.line.status = testStatus({ rejectRatio: 1 });
    rig.door.tick();
    expect(rig.door.gateRejectRatio).toBe(0);
  });
});

describe("RoomDoor: hostile cookies", () => {
  it("takes no ticket that another key, another room or nobody signed", () => {
    const rig = new RoomRig([saleRoom({ name: "other", match: elsewhere }), saleRoom()]);
    rig.line.spareCount = 3;
    const own = rig.browse().cookie ?? "";
    const foreign = rig.browse(undefined, { ":path": "/other" }).cookie ?? "";
    rig.line.spareCount = 0;
    const forgeries = [
      foreign,
      `headgate-sale=${"A".repeat(48)}`,
      "headgate-sale=x",
      `${own.slice(0, -1)}${own.endsWith("A") ? "B" : "A"}`,
      own.replace("=", "=A"),
    ];
    for (const cookie of forgeries) expect(rig.browse(cookie).shown).toBe("waiting");
    expect(rig.count("forged")).toBe(forgeries.length);
    expect(rig.browse(own).shown).toBe("admitted");
    rig.keys = [testKey("second")];
    expect(rig.browse(own).shown).toBe("waiting");
    rig.keys = [testKey("second"), testKey("first")];
    expect(rig.browse(own).shown).toBe("admitted");
  });

  it("binds tickets to an address prefix where the policy says so", () => {
    const cookie = { ...saleRoom().cookie, addressBits: { v4: 24, v6: 56 } };
    const rig = new RoomRig([saleRoom({ cookie })]);
    rig.line.spareCount = 1;
    const from = (address: string, ticket?: string) =>
      rig.ask({
        headers: { ...navigation, ...(ticket === undefined ? {} : { cookie: ticket }) },
        attributes: { "source.address": address },
      });
    const ticket = from("192.0.2.7:1").cookie;
    expect(from("192.0.2.200:9", ticket).shown).toBe("admitted");
    expect(from("192.0.3.7:1", ticket).shown).toBe("waiting");
    expect(from("[2001:db8::1]:1", ticket).shown).toBe("waiting");
  });

  it("reads a few cookies of its name, however many and long there are", () => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const own = rig.browse().cookie ?? "";
    const junk = Array.from({ length: 4 }, () => `headgate-sale=${"x".repeat(8_000)}`).join("; ");
    expect(rig.browse(`${own}; ${junk}`).shown).toBe("admitted");
    expect(rig.browse(`${junk}; ${own}`).shown).toBe("waiting");
    const many = Array.from({ length: 5_000 }, (_, i) => `c${i}=1`).join("; ");
    expect(rig.browse(`${many}; ${own}`).shown).toBe("admitted");
    expect(rig.browse(`x${own}`).shown).toBe("waiting");
  });

  it("believes no cookie more for a clock of this process that was set back", () => {
    const rig = new RoomRig([saleRoom({ sessionMs: 100_000 })]);
    rig.line.spareCount = 1;
    const { cookie } = rig.browse();
    rig.line.nowSecond = 201;
    rig.admission.clock.stepEpoch(-86_400_000_000);
    expect(rig.browse(cookie).shown).toBe("waiting");
  });
});

const elsewhere = { hosts: [], paths: ["/other"], methods: [] };
