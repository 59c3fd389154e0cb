import { expect, test } from "vitest";
import { navigation, RoomRig, saleRoom } from "../support/room-rig.js";

test("a join limit holds against 100,000 joins from one address, whatever they say", async () => {
  const per = { kind: "remoteAddress" } as const;
  const joinLimit = { per, requests: 60, periodSeconds: 60, burst: 10 };
  const rig = new RoomRig([saleRoom({ joinLimit })]);
  for (let i = 0; i < 100_000; i += 50) {
    for (let k = i; k < i + 50; k += 1) {
      rig.begin({
        headers: { ...navigation, cookie: `headgate-sale=${k}`, "x-forwarded-for": `${k}` },
        attributes: { "source.address": `192.0.2.7:${k % 65_536}` },
      });
    }
    rig.admission.clock.advance(1);
    await rig.settle();
  }
  // Just below two seconds have passed: the burst, and one of a second.
  expect(rig.line.nextNumber).toBe(11);
  expect(rig.count("joinLimited")).toBe(100_000 - 11);
});
