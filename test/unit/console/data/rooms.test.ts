import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  formatRange,
  formatWait,
  judgeRoom,
  meanWaits,
  mergeRooms,
} from "../../../../src/console/data/rooms.js";
import { type Room, RoomSchema } from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

type Fields = Exclude<MessageInitShape<typeof RoomSchema>, Room>;

function roomOf(fields: Fields = {}) {
  const line = { waiting: 0n, active: 5n, activeMax: 10n, age: { seconds: 1n } };
  const usual = { name: "drop", mode: "open", phase: "none", leader: "r1" };
  return create(RoomSchema, { ...usual, isStoreReachable: true, line, ...fields });
}

describe("mergeRooms()", () => {
  it("takes the line of who heard from the leader last, and adds up waits", () => {
    const late = roomOf({
      replica: "a",
      waits: 10n,
      waitsInRange: 5n,
      line: { age: { seconds: 9n } },
    });
    const fresh = roomOf({ replica: "b", waits: 30n, waitsInRange: 29n });
    const silent = create(RoomSchema, { name: "drop", replica: "c" });
    const other = roomOf({ name: "shop", replica: "a" });
    const merged = mergeRooms([late, other, fresh, silent]);
    expect(merged.map(({ room, heldRatio }) => [room.name, room.replica, heldRatio])).toEqual([
      ["drop", "b", 0.85],
      ["shop", "a", undefined],
    ]);
    expect(merged[0]?.replicas).toEqual([late, fresh, silent]);
  });
});

describe("judgeRoom()", () => {
  it.each<[string, string, Fields]>([
    ["good", "open", {}],
    ["good", "event open", { phase: "open" }],
    ["warn", "visitors wait", { line: { waiting: 1n } }],
    ["notice", "pre-queue", { phase: "preQueue", line: { waiting: 1n } }],
    ["warn", "paused", { mode: "paused" }],
    ["warn", "draining", { mode: "draining" }],
    ["bad", "no leader", { leader: "", mode: "paused" }],
    ["bad", "store away", { isStoreReachable: false, leader: "" }],
  ])("is %s: %s", (tone, word, fields) => {
    const room = roomOf(fields);
    expect(judgeRoom({ room, replicas: [room], heldRatio: undefined })).toEqual({ tone, word });
  });

  it("says that the store is away where one replica of several misses it", () => {
    const room = roomOf();
    const replicas = [room, roomOf({ isStoreReachable: false })];
    expect(judgeRoom({ room, replicas, heldRatio: 1 }).word).toBe("store away");
  });
});

describe("formatRange()", () => {
  it("writes seconds, and from ten minutes on minutes", () => {
    const seconds = (count: number) => ({
      $typeName: "google.protobuf.Duration" as const,
      seconds: BigInt(count),
      nanos: 0,
    });
    const range = (low: number, high: number) =>
      formatRange({
        $typeName: "headgate.admin.v1.WaitRange",
        low: seconds(low),
        high: seconds(high),
      });
    expect(range(0, 95)).toBe("0s to 1m35s");
    expect(range(601, 5_790)).toBe("10m to 1h37m");
    expect(formatRange(undefined)).toBe("-");
    expect(formatWait(59.6)).toBe("1m");
  });
});

describe("meanWaits()", () => {
  it("is the mean over the last points in which somebody entered", () => {
    const point = (waits: number, sum: number) => ({ waits, sum });
    const points = [undefined, point(0, 0), point(2, 20), point(0, 0), point(1, 40), point(0, 0)];
    expect(meanWaits(points, ({ sum }) => sum, 3)).toEqual([undefined, undefined, 10, 10, 20, 40]);
  });
});
