import { describe, expect, it } from "vitest";
import {
  navigation,
  RoomRig,
  roomsPolicy,
  saleRoom,
  testStatus,
} from "../../../support/room-rig.js";

describe("RoomAdmission", () => {
  it("asks admission at once, for the same headers, where no policy has a room", () => {
    const rig = new RoomRig([]);
    const { admission } = rig.admission;
    expect(rig.rooms.requestHeaderNames).toBe(admission.requestHeaderNames);
    expect(rig.rooms.attributeNames).toBe(admission.attributeNames);
    expect(rig.browse().shown).toBe("admitted");
  });

  it("wants what rooms look at, in sets that change with the policy alone", () => {
    const rig = new RoomRig();
    const before = rig.rooms.requestHeaderNames;
    expect([...before]).toEqual(expect.arrayContaining(["cookie", "accept-language", ":path"]));
    expect(rig.rooms.requestHeaderNames).toBe(before);
    expect([...rig.rooms.attributeNames]).toEqual([]);
    const bypass = { ...saleRoom().bypass, sources: ["10.0.0.0/8"] };
    rig.admission.policy = roomsPolicy([saleRoom({ bypass })]);
    expect([...rig.rooms.attributeNames]).toEqual(["source.address"]);
  });

  it("keeps what it has counted when the policy changes, and forgets rooms that are gone", () => {
    const rig = new RoomRig();
    rig.browse();
    rig.admission.policy = roomsPolicy([saleRoom({ waitingMax: 5 })]);
    expect(rig.count("joined")).toBe(1);
    rig.admission.policy = roomsPolicy([]);
    expect(rig.rooms.doors.size).toBe(0);
    expect(rig.browse().shown).toBe("admitted");
  });

  it.each([
    { path: "/checkout", shown: "waiting" },
    { path: "/checkout/pay?x=/static", shown: "waiting" },
    { path: "/static", shown: "admitted" },
    { path: "/static/../checkout", shown: "waiting" },
    { path: "/static/%2e%2e/checkout", shown: "waiting" },
    { path: "//checkout", shown: "waiting" },
    { path: "/static%2fx", shown: "waiting" },
  ])("guards its paths, and what may be read as one: $path", ({ path, shown }) => {
    const match = { hosts: [], paths: ["/checkout/*"], methods: [] };
    const rig = new RoomRig([saleRoom({ match })]);
    expect(rig.browse(undefined, { ":path": path }).shown).toBe(shown);
  });

  it("guards its hosts and methods, by the route's service or by the host", () => {
    const match = { hosts: ["orders.example"], paths: [], methods: ["GET"] };
    const rig = new RoomRig([saleRoom({ match })]);
    const at = (authority: string, method = "GET") =>
      rig.browse(undefined, { ":authority": authority, ":method": method }).shown;
    expect(at("Orders.example:443")).toBe("waiting");
    expect(at("other.example")).toBe("admitted");
    expect(at("orders.example", "POST")).toBe("admitted");
    const byHost = { ...navigation, ":authority": "orders.example" };
    expect(rig.ask({ service: undefined, headers: byHost }).shown).toBe("waiting");
    expect(rig.ask({ service: "carts", headers: byHost }).shown).toBe("admitted");
  });

  it("asks the first room that guards a request", () => {
    const paths = { hosts: [], paths: ["/a"], methods: [] };
    const rig = new RoomRig([saleRoom({ name: "first", match: paths }), saleRoom()]);
    rig.browse(undefined, { ":path": "/a" });
    rig.browse(undefined, { ":path": "/b" });
    expect(rig.rooms.doors.get("first")?.counts.outcomes.get("joined")).toBe(1);
    expect(rig.count("joined")).toBe(1);
  });

  it("asks no room of another service", () => {
    const rig = new RoomRig([saleRoom({ name: "other", service: "carts" }), saleRoom()]);
    expect(rig.browse().shown).toBe("waiting");
    expect(rig.rooms.doors.get("other")?.counts.outcomes.get("joined")).toBe(0);
    expect(rig.count("joined")).toBe(1);
    const elsewhere = new RoomRig([saleRoom({ service: "carts" })]);
    expect(elsewhere.browse().shown).toBe("admitted");
  });

  it("lets pass whom the policy lets, by header, address and class", () => {
    const bypass = {
      headers: [
        { name: "x-staff", values: ["secret"] },
        { name: "x-robot", values: [] },
      ],
      sources: ["10.0.0.0/8"],
      priorities: ["critical" as const],
    };
    const rig = new RoomRig([saleRoom({ bypass })]);
    const ask = (headers: Record<string, string>, address = "192.0.2.1:9") =>
      rig.ask({
        headers: { ...navigation, ...headers },
        attributes: { "source.address": address },
      }).shown;
    expect(ask({ "x-staff": "secret" })).toBe("admitted");
    expect(ask({ "x-staff": "other" })).toBe("waiting");
    expect(ask({ "x-robot": "" })).toBe("admitted");
    expect(ask({}, "10.1.2.3:9")).toBe("admitted");
    expect(ask({ "x-request-priority": "critical" })).toBe("admitted");
    expect(ask({ "x-request-priority": "high" })).toBe("waiting");
    expect(ask({ ":path": "/healthz" })).toBe("admitted");
    expect(rig.count("bypassed")).toBe(5);
  });

  it("holds a request in admission's queue as admission would, with the cookie at its end", () => {
    const queue = { sizeMax: 3, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const rig = new RoomRig([saleRoom()], { maxInFlight: 1, queue });
    rig.line.spareCount = 2;
    const first = rig.browse();
    const second = rig.browse();
    expect([second.shown, second.waits.length]).toEqual(["waiting", 1]);
    first.complete();
    expect(second.shown).toBe("admitted");
    expect(second.cookie).toMatch(/^headgate-sale=/);
    const isPrivate = { name: "cache-control", value: "private", isAppended: true };
    expect(second.terms[0]?.responseSetHeaders).toContainEqual(isPrivate);
    second.complete();
    expect(rig.admission.service().pools.whole.inUseCount()).toBe(0);
  });

  it("tells a caller nothing that has left while the line was asked", () => {
    const rig = new RoomRig([saleRoom()], { maxInFlight: 1 });
    rig.line.spareCount = 1;
    const left = rig.begin({ headers: navigation });
    left.leave();
    rig.line.runTurns();
    expect(left.shown).toBe("asking");
    expect(rig.admission.service().pools.whole.inUseCount()).toBe(0);
  });
});

describe("endpoints of a room", () => {
  it("say how a visitor stands, and let in whose turn it is", () => {
    const rig = new RoomRig();
    rig.line.status = testStatus({ nextNumber: 1, liveByBlock: [1] });
    const { cookie } = rig.browse();
    const waiting = rig.call("position", cookie);
    expect(waiting.page.status).toBe(200);
    expect(waiting.json).toMatchObject({ inWaitingRoom: true, state: "waiting", position: 1 });
    expect(waiting.json["page"]).toBeUndefined();
    expect(rig.call("position?page", cookie).json["page"]).toMatchObject({ position: "1" });
    rig.line.entries.set(0, { kind: "entered", session: 5, usedSecond: 100 });
    rig.line.nowSecond = 110;
    const entered = rig.call("position", cookie);
    expect(entered.json).toMatchObject({ inWaitingRoom: false, state: "entered" });
    expect(rig.browse(entered.cookie).shown).toBe("admitted");
    expect(rig.call("position", entered.cookie).json).toMatchObject({ state: "entered" });
  });

  it("say in how many seconds an event opens, rounded up", () => {
    const rig = new RoomRig();
    const { cookie } = rig.browse();
    expect(rig.call("position", cookie).json["opensInSeconds"]).toBeUndefined();
    rig.line.status = testStatus({ phase: "preQueue", opensSecond: 160.5, nextNumber: 1 });
    const early = rig.call("position", cookie).json;
    expect(early).toMatchObject({ state: "preQueue", opensInSeconds: 61, waitTimeKnown: false });
    rig.line.nowSecond = 170;
    expect(rig.call("position", cookie).json).toMatchObject({ opensInSeconds: 0 });
  });

  it("give no place to whoever only asks, and one to whoever joins", () => {
    const rig = new RoomRig();
    expect(rig.call("position").json).toMatchObject({ inWaitingRoom: false, state: "left" });
    expect(rig.line.nextNumber).toBe(0);
    const joined = rig.call("join", undefined, "POST");
    expect(joined.json).toMatchObject({ inWaitingRoom: true, state: "waiting" });
    expect(rig.call("position", joined.cookie).json).toMatchObject({ state: "waiting" });
    rig.line.spareCount = 1;
    const entered = rig.call("join", undefined, "POST");
    expect(entered.json).toMatchObject({ inWaitingRoom: false, state: "entered" });
    expect(rig.browse(entered.cookie).shown).toBe("admitted");
  });

  it("take a place or a session back, and the cookie", () => {
    const rig = new RoomRig();
    rig.line.spareCount = 1;
    const inside = rig.browse().cookie;
    const waiting = rig.browse().cookie;
    const left = rig.call("leave", waiting, "POST");
    expect(left.cookie).toBe("headgate-sale=");
    rig.call("leave", inside, "POST");
    expect(rig.line.left).toMatchObject([{ number: 1 }, { number: 0, session: 1_000 }]);
    const form = rig.browse(waiting, { ":method": "POST", ":path": "/.waiting-room/sale/leave" });
    expect([form.page.status, form.shown]).toEqual([200, "left"]);
    expect(form.page.body).toContain("You have left the line");
    expect(form.page.body).not.toContain("What you sent was not delivered.");
  });

  it.each([
    { endpoint: "join", method: "GET", status: 405 },
    { endpoint: "leave", method: "GET", status: 405 },
    { endpoint: "position", method: "POST", status: 405 },
    { endpoint: "other", method: "GET", status: 404 },
    { endpoint: "position/x", method: "GET", status: 404 },
  ])("refuse $method $endpoint", ({ endpoint, method, status }) => {
    const rig = new RoomRig();
    expect(rig.call(endpoint, undefined, method).page.status).toBe(status);
  });

  it("obey no other site", () => {
    const rig = new RoomRig();
    const { cookie = "" } = rig.browse();
    const headers = {
      ":method": "POST",
      ":path": "/.waiting-room/sale/leave",
      "sec-fetch-site": "cross-site",
      cookie,
    };
    expect(rig.ask({ headers }).page.status).toBe(403);
    expect(rig.line.left).toEqual([]);
  });
});
