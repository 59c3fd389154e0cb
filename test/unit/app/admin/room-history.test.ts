import { describe, expect, it } from "vitest";
import { RoomHistory } from "../../../../src/app/admin/room-history.js";
import { TestRooms, testRoomView, testStatus } from "../../../support/room-views.js";
import { testRoom } from "../../../support/waiting-rooms.js";

const bounds = { stepMs: 1_000, stepsMax: 900 };

describe("RoomHistory", () => {
  it("keeps how a room stood in each second, and what its visitors were told and waited", () => {
    const first = testRoomView();
    const rooms = new TestRooms(first);
    const history = new RoomHistory(rooms, bounds);
    history.look([1_000]);
    const waits = {
      ...first.waits,
      endedCount: 13,
      inRangeCount: 11,
      expectedSeconds: 6_900,
      actualSeconds: 7_300,
    };
    const status = testStatus({ second: 102, nextNumber: 1_530, waitingCount: 420 });
    rooms.views = [testRoomView({ status, waits, estimate: undefined })];
    history.look([2_000]);
    expect(history.read("shop", 0)).toEqual({
      startMs: 1_000,
      columns: {
        waiting: [400, 420],
        active: [90, 90],
        activeMax: [100, 100],
        // 30 numbers in 2 s.
        arrivals: [0, 15],
        entries: [0.5, 0.5],
        abandoned: [expect.closeTo(0.4), expect.closeTo(0.42)],
        estimateLow: [540, 0],
        estimateHigh: [660, 0],
        waits: [0, 3],
        waitsInRange: [0, 2],
        expectedSeconds: [0, 900],
        actualSeconds: [0, 1_000],
      },
    });
    expect(history.arrivalsPerSecond("shop")).toBe(7.5);
  });

  it("knows no arrivals over two lines, nor while the leader says nothing new", () => {
    const rooms = new TestRooms(testRoomView());
    const history = new RoomHistory(rooms, bounds);
    const look = (at: number, ...status: readonly [number, number, number?]): number => {
      const [second, nextNumber, lineId = 7] = status;
      rooms.views = [testRoomView({ status: testStatus({ lineId, second, nextNumber }) })];
      history.look([at * 1_000]);
      return history.read("shop", (at - 1) * 1_000)?.columns.arrivals[0] ?? Number.NaN;
    };
    expect(look(1, 100, 1_000)).toBe(0);
    expect(look(2, 101, 1_010)).toBe(10);
    // The same status, for up to 3 s.
    expect([3, 4, 5, 6].map((at) => look(at, 101, 1_010))).toEqual([10, 10, 10, 0]);
    expect(look(7, 106, 1_020)).toBe(2);
    expect(look(8, 1, 5_000, 8)).toBe(0);
    expect(look(9, 2, 5_003, 8)).toBe(3);
  });

  it("forgets rooms that the policy has not any more, and keeps 100 of them at most", () => {
    const views = Array.from({ length: 101 }, (_, i) =>
      testRoomView({ policy: testRoom({ name: `room-${i}` }) }),
    );
    const rooms = new TestRooms(...views);
    const history = new RoomHistory(rooms, bounds);
    history.look([1_000]);
    expect(history.byteCount).toBe(100 * 12 * 900 * 4);
    expect(history.read("room-99", 0)?.startMs).toBe(1_000);
    expect(history.read("room-100", 0)).toBeUndefined();
    rooms.views = views.slice(100);
    history.look([2_000]);
    expect(history.read("room-99", 0)).toBeUndefined();
    expect(history.read("room-100", 0)?.startMs).toBe(2_000);
    expect(history.arrivalsPerSecond("room-99")).toBe(0);
  });
});
