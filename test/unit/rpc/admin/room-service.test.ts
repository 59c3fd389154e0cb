import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import {
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { Principal } from "../../../../src/core/base/access-list.js";
import { readAuditEntry } from "../../../../src/core/base/audit-entry.js";
import {
  ExplainTicketRequestSchema,
  ExplainTicketResponseSchema,
  LetInRequestSchema,
  ListRoomsRequestSchema,
  ListRoomsResponseSchema,
  RoomService,
  SetRoomOverrideRequestSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";
import { PolicyBuilder } from "../../../../src/policy/policy.js";
import { adminCallKey } from "../../../../src/rpc/admin/call.js";
import { roomService, ticketCharsMax } from "../../../../src/rpc/admin/room-service.js";
import { servicesPolicy, testService } from "../../../support/admission.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";
import { TestRooms, testRoomView, testStatus } from "../../../support/room-views.js";
import { testRoom } from "../../../support/waiting-rooms.js";

const operator: Principal = { name: "ann", grants: [{ role: "operator", domains: undefined }] };
const reader: Principal = { name: "eve", grants: [{ role: "reader", domains: undefined }] };
/** Sees and changes what belongs to a domain, and the service "orders" belongs to none. */
const shopOperator: Principal = { name: "bob", grants: [{ role: "operator", domains: ["shop"] }] };

function contextOf(principal: Principal): HandlerContext {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd: () => {} };
  return createHandlerContext({
    service: RoomService,
    method: RoomService.method.listRooms,
    protocolName: "test",
    requestMethod: "POST",
    url: "http://localhost",
    contextValues: createContextValues().set(adminCallKey, call),
  });
}

const event = {
  name: "friday",
  startsAtMs: 1_700_000_000_000,
  endsAtMs: 1_700_003_600_000,
  preQueueMs: 0,
  shuffles: false,
  activeUsersMax: undefined,
  entriesPerMinuteMax: undefined,
} as const;

const ticket = "c2VjcmV0LXRpY2tldA";

function start({ domain }: { readonly domain?: string } = {}) {
  const controls = new TestRooms(testRoomView({ policy: testRoom({ events: [event] }) }));
  controls.tickets.set(ticket, {
    room: "shop",
    kind: "waiting",
    number: 1_234,
    entry: { kind: "waiting" },
    aheadCount: 56,
    estimate: { lowSeconds: 90, middleSeconds: 100.5, highSeconds: 120 },
    atMs: 1_700_000_000_000,
  });
  const clock = new FakeClock();
  const records = memoryRecords(clock);
  const rateLimit = domain === undefined ? undefined : { domain };
  const service = { ...testService({}), rateLimit } as ReturnType<typeof testService>;
  const policy = servicesPolicy([service]);
  const rooms = { controls, arrivalsPerSecond: () => 1.5 };
  const policies = { current: () => policy, onLoaded: () => () => {} };
  const api = roomService({ clock, records, replica: "r1", rooms, policies });
  const audit = async () => {
    const entries = await records.audit(Number.POSITIVE_INFINITY, 100);
    return entries.map(({ value }) => readAuditEntry(value));
  };
  const set = (
    change: MessageInitShape<typeof SetRoomOverrideRequestSchema>,
    principal: Principal = operator,
  ) => {
    const request = create(SetRoomOverrideRequestSchema, {
      room: "shop",
      reason: "because",
      ...change,
    });
    return Promise.resolve(api.setRoomOverride(request, contextOf(principal)));
  };
  return { api, controls, audit, set };
}

describe("ListRooms", () => {
  it("tells what the leader of a room published, and what this replica has counted", async () => {
    const { api } = start();
    const answer = await api.listRooms(create(ListRoomsRequestSchema), contextOf(reader));
    const message = create(ListRoomsResponseSchema, answer);
    expect(toJson(ListRoomsResponseSchema, message)).toEqual({
      rooms: [
        {
          name: "shop",
          service: "orders",
          replica: "r1",
          mode: "open",
          phase: "none",
          events: [
            {
              name: "friday",
              startsAt: "2023-11-14T22:13:20Z",
              endsAt: "2023-11-14T23:13:20Z",
            },
          ],
          line: {
            waiting: "400",
            active: "90",
            activeMax: "100",
            arrivalsPerSecond: 1.5,
            entriesPerSecond: 0.5,
            abandonment: 0.001,
            sessionLength: "200s",
            rangeFactor: 1.2,
            age: "1s",
          },
          estimate: { low: "540s", middle: "600s", high: "660s" },
          leader: "replica-1",
          isStoreReachable: true,
          onStoreFailure: "keep",
          gateRejectRatio: 0.25,
          requests: { joined: "1500", entered: "1000" },
          waits: "10",
          waitsInRange: "9",
          expectedWait: "6000s",
          actualWait: "6300s",
        },
      ],
    });
  });

  it("has no line before the store has answered, and tells when the next event opens", async () => {
    const { api, controls } = start();
    const list = async () => {
      const answer = await api.listRooms(create(ListRoomsRequestSchema), contextOf(reader));
      return create(ListRoomsResponseSchema, answer).rooms[0];
    };
    const [view = testRoomView()] = controls.views;
    const line = { status: undefined, isReachable: false, second: () => undefined };
    controls.views = [{ ...view, line, leaderId: undefined }];
    expect(await list()).toMatchObject({ leader: "", isStoreReachable: false });
    expect((await list())?.line).toBeUndefined();
    const status = testStatus({ opensSecond: 161, phase: "preQueue", mode: "paused" });
    controls.views = [testRoomView({ status, phase: "preQueue" })];
    const room = await list();
    expect(room).toMatchObject({ mode: "paused", phase: "preQueue" });
    expect(room?.line?.opensIn?.seconds).toBe(60n);
  });

  it("hides the rooms of services that the caller may not see", async () => {
    const list = async (domain: string | undefined, principal: Principal) => {
      const { api } = start(domain === undefined ? {} : { domain });
      const answer = await api.listRooms(create(ListRoomsRequestSchema), contextOf(principal));
      return create(ListRoomsResponseSchema, answer).rooms.length;
    };
    expect(await list("shop", shopOperator)).toBe(1);
    expect(await list("pay", shopOperator)).toBe(0);
    expect(await list(undefined, shopOperator)).toBe(0);
    const { api } = start({ domain: "pay" });
    const request = create(ListRoomsRequestSchema, { room: "shop" });
    const one = async () => api.listRooms(request, contextOf(shopOperator));
    await expect(one()).rejects.toThrow(/^unknown waiting room$/);
  });

  it("suggests the nearest name for one that there is not", async () => {
    const { api } = start();
    const request = create(ListRoomsRequestSchema, { room: "shpo" });
    const one = async () => api.listRooms(request, contextOf(reader));
    await expect(one()).rejects.toThrow('unknown waiting room; did you mean "shop"?');
  });
});

describe("SetRoomOverride", () => {
  it("keeps what was changed before, until it is reset", async () => {
    const { controls, set, audit } = start();
    expect(await set({ mode: "paused" })).toEqual({
      override: { mode: "paused", openedEvent: "" },
    });
    await set({ activeUsers: 0n, entriesPerMinute: 60n });
    await set({ openEvent: "friday" });
    const all = {
      mode: "paused",
      activeUsersMax: 0,
      entriesPerMinuteMax: 60,
      openedEvent: "friday",
    };
    expect(controls.overrides.at(-1)).toEqual(["shop", all]);
    await set({ openEvent: "" });
    expect(controls.overrides.at(-1)).toEqual(["shop", { ...all, openedEvent: undefined }]);
    expect(await set({ reset: true, mode: "draining" })).toEqual({
      override: { mode: "draining", openedEvent: "" },
    });
    // Nothing is left that would be otherwise than the policy says.
    expect(await set({ mode: "open" })).toEqual({});
    expect(controls.overrides.at(-1)).toEqual(["shop", undefined]);
    const [newest, , , event] = await audit();
    expect(newest).toEqual({
      author: "ann",
      role: "operator",
      action: "SetRoomOverride",
      subject: "shop",
      domain: undefined,
      before: '{"mode":"draining"}',
      after: "",
      reason: "because",
      replica: "r1",
    });
    expect(event?.after).toBe(
      '{"mode":"paused","activeUsersMax":0,"entriesPerMinuteMax":60,"openedEvent":"friday"}',
    );
  });

  it("keeps what another replica was told a moment ago", async () => {
    const { controls, set, audit } = start();
    const values = { activeUsersMax: 5, entriesPerMinuteMax: undefined, openedEvent: undefined };
    controls.setElsewhere = { mode: "open", ...values };
    await set({ mode: "paused" });
    expect(controls.overrides).toEqual([["shop", { mode: "paused", ...values }]]);
    expect((await audit())[0]?.before).toBe('{"mode":"open","activeUsersMax":5}');
  });

  it.each<[string, MessageInitShape<typeof SetRoomOverrideRequestSchema>]>([
    ["mode: must be one of open, paused, draining", { mode: "closed" }],
    ["mode: nothing to change", {}],
    ["active_users: must be a whole number from 0 to 1000000", { activeUsers: 1_000_001n }],
    [
      "entries_per_minute: must be a whole number from 0 to 1000000",
      { entriesPerMinute: 18_446_744_073_709_551_615n },
    ],
    ["open_event: it has more than", { openEvent: "x".repeat(100_000) }],
    ['unknown event; did you mean "friday"?', { openEvent: "frida" }],
    ["reason: required", { mode: "paused", reason: " " }],
    ["room: required", { mode: "paused", room: "" }],
    ["unknown waiting room", { mode: "paused", room: "nothing" }],
  ])("says %s", async (problem, change) => {
    const { set, controls, audit } = start();
    await expect(set(change)).rejects.toThrow(problem);
    expect([controls.overrides, await audit()]).toEqual([[], []]);
  });

  it("needs an operator of the service's domain", async () => {
    const ofShop = start({ domain: "shop" });
    await ofShop.set({ mode: "paused" }, shopOperator);
    expect((await ofShop.audit())[0]?.domain).toBe("shop");
    const { set, controls } = start();
    await expect(set({ mode: "paused" }, reader)).rejects.toThrow("this needs the role operator");
    await expect(set({ mode: "paused" }, shopOperator)).rejects.toThrow("unknown waiting room");
    expect(controls.overrides).toEqual([]);
  });
});

describe("LetIn", () => {
  const letIn = ({ api }: ReturnType<typeof start>, fields = {}, principal = operator) => {
    const request = create(LetInRequestSchema, {
      room: "shop",
      ticket,
      reason: "case 42",
      ...fields,
    });
    return Promise.resolve(api.letIn(request, contextOf(principal)));
  };

  it("notes the number of the visitor, and no ticket", async () => {
    const rig = start();
    expect(await letIn(rig)).toEqual({ number: 1_234n });
    expect(rig.controls.letIns).toEqual([ticket]);
    const entries = await rig.audit();
    expect(entries).toMatchObject([{ action: "LetIn", subject: "shop", after: '{"number":1234}' }]);
    expect(JSON.stringify(entries)).not.toContain(ticket);
  });

  it.each([
    ["gone", "the visitor has left, or its session is over"],
    ["full", "no session is left to let a visitor in; try again"],
    ["forged", "ticket: it is not a ticket of this room"],
  ] as const)("says what is wrong with a ticket that is %s", async (outcome, problem) => {
    const rig = start();
    rig.controls.letInOutcome = outcome;
    await expect(letIn(rig)).rejects.toThrow(problem);
  });

  it("repeats nothing of a ticket that is none", async () => {
    const rig = start();
    for (const bad of ["forged-ticket", "x".repeat(ticketCharsMax + 1), ""]) {
      const failure: unknown = await letIn(rig, { ticket: bad }).catch((error: unknown) => error);
      expect(String(failure)).toMatch(/ticket: /);
      if (bad !== "") expect(String(failure)).not.toContain(bad);
    }
    expect([rig.controls.letIns, await rig.audit()]).toEqual([[], []]);
  });

  it("needs an operator", async () => {
    const rig = start();
    await expect(letIn(rig, {}, reader)).rejects.toThrow("this needs the role operator");
    expect(rig.controls.letIns).toEqual([]);
  });
});

describe("ExplainTicket", () => {
  const explain = ({ api }: ReturnType<typeof start>, text: string) => {
    const request = create(ExplainTicketRequestSchema, { room: "shop", ticket: text });
    return Promise.resolve(api.explainTicket(request, contextOf(reader)));
  };

  it("tells where the visitor stands", async () => {
    const message = create(ExplainTicketResponseSchema, await explain(start(), ticket));
    expect(toJson(ExplainTicketResponseSchema, message)).toEqual({
      kind: "waiting",
      number: "1234",
      state: "waiting",
      ahead: "56",
      estimate: { low: "90s", middle: "100.500s", high: "120s" },
      time: "2023-11-14T22:13:20Z",
    });
  });

  it("knows no state where the line is over, and no ticket of others", async () => {
    const rig = start();
    rig.controls.tickets.set("old", {
      room: "shop",
      kind: "session",
      number: 3,
      entry: undefined,
      aheadCount: undefined,
      estimate: undefined,
      atMs: 0,
    });
    expect(await explain(rig, "old")).toMatchObject({ kind: "session", state: "unknown" });
    await expect(explain(rig, "other")).rejects.toThrow("ticket: it is not a ticket of this room");
  });
});

describe("rooms of a process without any", () => {
  it("are answered UNIMPLEMENTED for", async () => {
    const clock = new FakeClock();
    const policy = new PolicyBuilder("v1").finish();
    const policies = { current: () => policy, onLoaded: () => () => {} };
    const api = roomService({ clock, records: memoryRecords(clock), replica: "r1", policies });
    const list = async () => api.listRooms(create(ListRoomsRequestSchema), contextOf(reader));
    await expect(list()).rejects.toThrow("this replica does not support it");
  });
});
