import { expect, test } from "vitest";
import { RoomRig, saleRoom } from "../support/room-rig.js";

test("a join limit holds against 100,000 joins from one address, whatever they say", async () => {
  const per = { kind: "remoteAddress" } as const;
  const joinLimit = { per, requests: 60, periodSeconds: 60, burst: 10 };
  const rig = new RoomRig([saleRoom({ joinLimit })]);
  await rig.flood(100_000, 1);
  // Just below two seconds have passed: the burst, and one of a second.
  expect(rig.line.nextNumber).toBe(11);
  expect(rig.count("joinLimited")).toBe(100_000 - 11);
});
