import { beforeEach, describe, expect, it } from "vitest";
import { AdminCallLog, linesPerMinuteMax } from "../../../../src/app/access/admin-call-log.js";
import { type LogEvent, silentLogger } from "../../../../src/app/base/logger.js";
import { FakeClock } from "../../../support/fake-clock.js";

let clock: FakeClock;
let events: LogEvent[];
let log: AdminCallLog;

beforeEach(() => {
  clock = new FakeClock();
  events = [];
  const note = (event: LogEvent): void => void events.push(event);
  log = new AdminCallLog(clock, { ...silentLogger, info: note, warn: note });
});

const call = (address: string) => ({ method: "ListRules", caller: undefined, address });

describe("AdminCallLog", () => {
  it("writes so many lines of a flood, and then how many it left out", () => {
    const floodCount = 100_000;
    for (let i = 0; i < floodCount; i += 1) log.noteRefused(call(`10.0.0.${i}`), "unauthenticated");
    expect(events).toHaveLength(linesPerMinuteMax);
    expect(events[0]).toEqual({
      event: "adminCallRefused",
      ...call("10.0.0.0"),
      code: "unauthenticated",
    });
    clock.advance(60_000);
    const unloggedCount = floodCount - linesPerMinuteMax;
    const last = { event: "adminCallsUnlogged", kind: "refused", unloggedCount };
    expect(events.slice(linesPerMinuteMax)).toEqual([last]);
    clock.advance(600_000);
    expect(events).toHaveLength(linesPerMinuteMax + 1);
    expect(clock.timerCount).toBe(0);
  });

  it("tells of calls that are alike once a minute", () => {
    for (let i = 0; i < 3; i += 1) log.noteLook(call("::1"));
    log.noteLook({ ...call("::1"), caller: "ann" });
    expect(events.map(({ event }) => event)).toEqual(["adminCallersShown", "adminCallersShown"]);
    clock.advance(60_000);
    expect(events.at(-1)).toMatchObject({ kind: "looked", unloggedCount: 2 });
    log.noteLook(call("::1"));
    expect(events.at(-1)).toMatchObject({ event: "adminCallersShown" });
  });

  it("leaves out no look for a flood of refusals", () => {
    for (let i = 0; i < 1_000; i += 1) log.noteRefused(call(`10.0.0.${i}`), "permission_denied");
    log.noteLook(call("::1"));
    expect(events.at(-1)).toMatchObject({ event: "adminCallersShown", address: "::1" });
  });

  it("tells what it has left out when it is closed", () => {
    log.noteLook(call("::1"));
    log.noteLook(call("::1"));
    log.close();
    expect(events.at(-1)).toMatchObject({ kind: "looked", unloggedCount: 1 });
    expect(clock.timerCount).toBe(0);
  });
});
