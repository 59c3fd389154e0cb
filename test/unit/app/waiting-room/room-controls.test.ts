import { afterEach, describe, expect, it } from "vitest";
import { AppRoomControls } from "../../../../src/app/waiting-room/room-controls.js";
import { RoomLines } from "../../../../src/fleet/waiting-room/room-lines.js";
import type { StoreRoomLine } from "../../../../src/fleet/waiting-room/store-room-line.js";
import { MemoryRooms } from "../../../../src/store/coordination/memory-rooms.js";
import { type FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import {
  type RoomAsking,
  RoomRig,
  roomsPolicy,
  saleRoom,
  testKey,
} from "../../../support/room-rig.js";

const opened: RoomLines[] = [];

afterEach(async () => {
  for (const lines of opened.splice(0)) await lines.stop();
});

/** A room for one visitor at a time, over a store in memory. */
class World {
  readonly rig: RoomRig;
  readonly controls: AppRoomControls;
  readonly clock: FakeClock;

  private constructor() {
    const room = saleRoom({ activeUsersMax: 1 });
    const found: { lines?: RoomLines; store?: MemoryRooms } = {};
    const lineOf = (name: string): StoreRoomLine => {
      return found.lines?.line(name) ?? expect.fail("the room has a line");
    };
    this.rig = new RoomRig([room], undefined, (clock) => {
      found.store = new MemoryRooms(clock);
      found.lines = new RoomLines({
        ...{ store: found.store, clock, random: new FakeRandom(), turnTimeoutMs: 500 },
        load: () => undefined,
      });
      found.lines.change([room]);
      opened.push(found.lines);
      return (name) => ({ line: lineOf(name), keys: () => [testKey("first")] });
    });
    this.clock = this.rig.admission.clock;
    const { rooms: admission } = this.rig;
    expect(admission.doors.size).toBe(1);
    const { store } = found;
    if (store === undefined) throw new Error("no store");
    this.controls = new AppRoomControls({ admission, store, lineOf, clock: this.clock });
  }

  static async open(): Promise<World> {
    const world = new World();
    await world.pass(3);
    return world;
  }

  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i += 1) {
      this.clock.advance(1_000);
      await settlePromises();
    }
  }

  /** A visitor goes to the page. */
  async browse(cookie?: string): Promise<RoomAsking> {
    const asking = this.rig.browse(cookie);
    await settlePromises();
    return asking;
  }

  /** The ticket that a visitor is given. */
  async ticket(): Promise<string> {
    const { cookie = "" } = await this.browse();
    return cookie.slice(cookie.indexOf("=") + 1);
  }
}

describe("AppRoomControls", () => {
  it("shows a room as it stands", async () => {
    const world = await World.open();
    await world.ticket();
    await world.ticket();
    await world.pass(2);
    const view = world.controls.room("sale") ?? expect.fail("there is a room");
    expect(view.line.status).toMatchObject({ activeCount: 1, waitingCount: 1 });
    expect(view).toMatchObject({ isLeader: true, phase: "none", gateRejectRatio: 0 });
    expect(view.counts.get("entered")).toBe(1);
    expect(view.counts.get("joined")).toBe(1);
    expect(world.controls.rooms()).toHaveLength(1);
    expect(world.controls.room("other")).toBeUndefined();
  });

  it("knows what an operator has set when that is kept", async () => {
    const { controls } = await World.open();
    const override = {
      mode: "paused",
      activeUsersMax: 7,
      entriesPerMinuteMax: undefined,
      openedEvent: undefined,
    } as const;
    await controls.override("sale", override);
    expect(controls.room("sale")?.override).toEqual(override);
    await controls.override("sale", undefined);
    expect(controls.room("sale")?.override).toBeUndefined();
  });

  it("keeps what is set for a room that a reload removes meanwhile", async () => {
    const { controls, rig } = await World.open();
    const overridden = controls.override("sale", undefined);
    rig.admission.policy = roomsPolicy([]);
    for (const lines of opened) lines.change([]);
    await expect(overridden).resolves.toBeUndefined();
  });

  it("explains a ticket without a visit of it", async () => {
    const world = await World.open();
    const inside = await world.ticket();
    const waiting = await world.ticket();
    await world.pass(2);
    expect(await world.controls.explain("sale", waiting)).toMatchObject({
      room: "sale",
      kind: "waiting",
      entry: { kind: "waiting" },
      aheadCount: 0,
    });
    expect(await world.controls.explain("sale", inside)).toMatchObject({
      kind: "session",
      entry: { kind: "entered" },
      aheadCount: undefined,
    });
    expect(await world.controls.explain("sale", "forged")).toBeUndefined();
    expect(await world.controls.explain("other", waiting)).toBeUndefined();
    await world.pass(200);
    expect((await world.controls.explain("sale", waiting))?.entry).toEqual({ kind: "gone" });
  });

  it("lets a visitor in past the order, and tells what is wrong with a ticket", async () => {
    const world = await World.open();
    await world.ticket();
    await world.ticket();
    const last = await world.ticket();
    await world.pass(2);
    expect(await world.controls.letIn("sale", "forged")).toBe("forged");
    const letIn = world.controls.letIn("sale", last);
    world.clock.runTurns();
    expect(await letIn).toBe("entered");
    await world.pass(6);
    expect((await world.browse(`headgate-sale=${last}`)).shown).toBe("admitted");
  });
});
