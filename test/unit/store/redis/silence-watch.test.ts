import { beforeEach, describe, expect, it } from "vitest";
import {
  SilenceWatch,
  defaultSilenceMsMax as silenceMsMax,
} from "../../../../src/store/redis/silence-watch.js";
import { FakeClock } from "../../../support/fake-clock.js";

/** Looks are 100 ms apart: a silence is told at most so much later. */
const slackMs = 200;

let clock: FakeClock;
let bytes: number;
let isOwed: boolean;
let reportedCount: number;
let watch: SilenceWatch;

beforeEach(() => {
  clock = new FakeClock();
  bytes = 0;
  isOwed = true;
  reportedCount = 0;
  watch = open();
});

function open(silence: { readonly silenceMsMax?: number } = {}): SilenceWatch {
  return new SilenceWatch({
    clock,
    ...silence,
    isOwed: () => isOwed,
    arrivedBytes: () => bytes,
    onSilence: () => {
      reportedCount += 1;
    },
  });
}

/** Lets time pass as it does in a process that keeps up. */
function pass(ms: number): void {
  clock.advance(ms);
  clock.runTurns();
}

describe("SilenceWatch", () => {
  it("tells once of a server that owes a reply and is silent for silenceMsMax", () => {
    watch.begin();
    pass(silenceMsMax - 1);
    expect(reportedCount).toBe(0);
    pass(slackMs);
    expect(reportedCount).toBe(1);
    pass(10 * silenceMsMax);
    expect(reportedCount).toBe(1);
    expect(clock.timerCount).toBe(0);
  });

  it("waits for as long as it is told to", () => {
    open({ silenceMsMax: 300 }).begin();
    pass(299);
    expect(reportedCount).toBe(0);
    pass(60);
    expect(reportedCount).toBe(1);
  });

  it("counts anew from whatever arrives", () => {
    watch.begin();
    for (let i = 0; i < 5; i += 1) {
      pass(silenceMsMax - 1);
      bytes += 1;
    }
    pass(slackMs);
    expect(reportedCount).toBe(0);
    pass(silenceMsMax);
    expect(reportedCount).toBe(1);
  });

  it("takes no stall of this process for the server's silence", () => {
    watch.begin();
    for (let i = 0; i < 5; i += 1) {
      clock.stall(10 * silenceMsMax);
      // The timers run first and what arrived is read after them, as the event loop has it.
      clock.scheduleTurn(() => {
        bytes += 1;
      });
      clock.advance(0);
    }
    expect(reportedCount).toBe(0);
  });

  it("counts a stall as one look where nothing had arrived", () => {
    watch.begin();
    clock.stall(10 * silenceMsMax);
    pass(silenceMsMax - 150);
    expect(reportedCount).toBe(0);
    pass(slackMs);
    expect(reportedCount).toBe(1);
  });

  it("looks no more when nothing is owed, until it begins again", () => {
    watch.begin();
    pass(silenceMsMax - 1);
    isOwed = false;
    pass(slackMs);
    expect(clock.timerCount).toBe(0);
    isOwed = true;
    watch.begin();
    watch.begin();
    expect(clock.timerCount).toBe(1);
    pass(silenceMsMax - 1);
    expect(reportedCount).toBe(0);
    pass(slackMs);
    expect(reportedCount).toBe(1);
  });

  it("ends at any time", () => {
    watch.begin();
    watch.end();
    expect(clock.timerCount).toBe(0);
    watch.begin();
    clock.advance(100);
    watch.end();
    pass(10 * silenceMsMax);
    expect(reportedCount).toBe(0);
  });
});
