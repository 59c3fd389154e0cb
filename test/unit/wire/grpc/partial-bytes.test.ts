import { expect, it } from "vitest";
import type { Clock } from "../../../../src/core/base/clock.js";
import { partialMsMax, schedulePartialEnd } from "../../../../src/wire/grpc/partial-bytes.js";
import { FakeClock } from "../../../support/fake-clock.js";

/**
 * Story: a process that was busy for ten seconds refused calls as too slow whose ends lay unread in
 * its sockets: timers come before input.
 */
it("schedulePartialEnd() lets a late process read what is there before it gives up", () => {
  const time = new FakeClock();
  const turns = new FakeClock();
  const clock: Clock = {
    monotonicMs: () => time.monotonicMs(),
    epochUs: () => time.epochUs(),
    schedule: (delayMs, callback) => time.schedule(delayMs, callback),
    scheduleTurn: (callback) => turns.scheduleTurn(callback),
  };
  const ended: string[] = [];
  schedulePartialEnd(clock, () => ended.push("slow"));
  const cancel = schedulePartialEnd(clock, () => ended.push("late"));
  const cancelEarly = schedulePartialEnd(clock, () => ended.push("whole"));
  time.advance(partialMsMax - 1);
  cancelEarly();
  time.advance(1);
  expect(ended).toEqual([]);
  // The rest of it is read.
  cancel();
  turns.runTurns();
  expect(ended).toEqual(["slow"]);
});
