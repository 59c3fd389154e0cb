import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../../src/app/base/metrics.js";
import { roomMetrics } from "../../../../src/app/metrics/room-metrics.js";
import { TestRooms, testRoomView } from "../../../support/room-views.js";
import { testRoom } from "../../../support/waiting-rooms.js";

async function linesOf(rooms: TestRooms): Promise<readonly string[]> {
  const metrics = createMetrics({});
  metrics.add(roomMetrics(rooms));
  const text = await metrics.render();
  return text.split("\n").filter((line) => line.startsWith("headgate_waiting_room_"));
}

describe("roomMetrics()", () => {
  it("has a series of each for each room", async () => {
    const lines = await linesOf(new TestRooms(testRoomView()));
    expect(lines).toEqual(
      expect.arrayContaining([
        'headgate_waiting_room_waiting{room="shop"} 400',
        'headgate_waiting_room_active{room="shop"} 90',
        'headgate_waiting_room_active_max{room="shop"} 100',
        'headgate_waiting_room_abandonment_ratio{room="shop"} 0.001',
        'headgate_waiting_room_reject_ratio{room="shop"} 0',
        'headgate_waiting_room_status_age_seconds{room="shop"} 1',
        'headgate_waiting_room_leading{room="shop"} 1',
        'headgate_waiting_room_store_reachable{room="shop"} 1',
        'headgate_waiting_room_gate_reject_ratio{room="shop"} 0.25',
        'headgate_waiting_room_mode{room="shop",mode="open"} 1',
        'headgate_waiting_room_mode{room="shop",mode="paused"} 0',
        'headgate_waiting_room_phase{room="shop",phase="none"} 1',
        'headgate_waiting_room_phase{room="shop",phase="pre_queue"} 0',
        'headgate_waiting_room_estimated_wait_seconds{room="shop",bound="high"} 660',
        'headgate_waiting_room_requests_total{room="shop",outcome="joined"} 1500',
        'headgate_waiting_room_requests_total{room="shop",outcome="store_failure"} 0',
        'headgate_waiting_room_waits_in_range_total{room="shop"} 9',
        'headgate_waiting_room_expected_wait_seconds_total{room="shop"} 6000',
        'headgate_waiting_room_wait_seconds_bucket{room="shop",le="300"} 0',
        'headgate_waiting_room_wait_seconds_bucket{room="shop",le="600"} 9',
        'headgate_waiting_room_wait_seconds_bucket{room="shop",le="+Inf"} 10',
        'headgate_waiting_room_wait_seconds_sum{room="shop"} 6300',
        'headgate_waiting_room_wait_seconds_count{room="shop"} 10',
      ]),
    );
  });

  it("says nothing of the line before the store has answered", async () => {
    const line = { status: undefined, isReachable: false, second: () => undefined };
    const view = { ...testRoomView({ estimate: undefined }), line, isLeader: false };
    const lines = await linesOf(new TestRooms(view));
    const names = lines.map((each) => each.split("{")[0] ?? "");
    for (const of of ["waiting", "active", "active_max", "status_age_seconds"]) {
      expect(names).not.toContain(`headgate_waiting_room_${of}`);
    }
    expect(lines).toContain('headgate_waiting_room_store_reachable{room="shop"} 0');
    expect(lines).toContain('headgate_waiting_room_leading{room="shop"} 0');
    expect(lines).toContain('headgate_waiting_room_mode{room="shop",mode="open"} 1');
  });

  it("labels with nothing but rooms of the policy and closed sets", async () => {
    const views = ["shop", "drop"].map((name) => testRoomView({ policy: testRoom({ name }) }));
    const lines = await linesOf(new TestRooms(...views));
    const rooms = new Set(lines.map((each) => /room="([^"]*)"/.exec(each)?.[1]));
    expect(rooms).toEqual(new Set(["shop", "drop"]));
    const labels = new Set(
      lines.flatMap((each) => [...each.matchAll(/(\w+)="/g)].map(([, one]) => one)),
    );
    expect([...labels].sort()).toEqual(["bound", "le", "mode", "outcome", "phase", "room"]);
  });
});
