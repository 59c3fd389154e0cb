import { describe, expect, it } from "vitest";
import { type ErrorCode, ServiceError } from "../../../../src/core/base/errors.js";
import type { SignalUpdate } from "../../../../src/core/concurrency/signal-update.js";
import {
  failureReportedMsMin,
  pollSpreadRatio,
  type SignalEvent,
  SignalPoller,
} from "../../../../src/fleet/signals/signal-poller.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";

/** A source in a test's hand: it says a number, fails, or hangs. */
class PolledRig {
  readonly clock = new FakeClock({ monotonicMs: 0 });
  readonly events: SignalEvent[] = [];
  readonly updates: SignalUpdate[] = [];
  readonly askedMs: number[] = [];
  readonly poller: SignalPoller;
  says: number | ErrorCode | "hangs" = 5;
  draw = 0.5;
  #held: ((reading: number) => void)[] = [];

  constructor(everyMs = 5_000) {
    const timing = { everyMs, timeoutMs: 2_000, staleAfterMs: 30_000 };
    this.poller = new SignalPoller({
      reader: { read: () => this.#read() },
      settings: { ...timing, whenMissing: "max", keysMax: 0, names: [] },
      clock: this.clock,
      random: { next: () => this.draw, id: () => "r" },
      onUpdate: (update) => this.updates.push(update),
      onEvent: (event) => this.events.push(event),
    });
  }

  get readings(): readonly unknown[] {
    return this.updates.map(({ rest }) => rest);
  }

  get eventKinds(): readonly string[] {
    return this.events.map(({ kind }) => kind);
  }

  /** What hung answers after all. */
  answerLate(reading: number): void {
    for (const answer of this.#held.splice(0)) answer(reading);
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms, 500);
  }

  async #read(): Promise<{ kind: "whole"; reading: number }> {
    this.askedMs.push(this.clock.monotonicMs());
    const { says } = this;
    if (typeof says === "number") return { kind: "whole", reading: says };
    if (says !== "hangs") throw new ServiceError(says);
    const reading = await new Promise<number>((resolve) => this.#held.push(resolve));
    return { kind: "whole", reading };
  }
}

describe("SignalPoller", () => {
  it("asks at once, and then again and again", async () => {
    const rig = new PolledRig();
    await rig.poller.settled;
    await rig.pass(10_000);
    expect(rig.askedMs).toEqual([0, 5_000, 10_000]);
    expect(rig.readings).toEqual([5, 5, 5]);
    expect(rig.poller.countByOutcome).toEqual(new Map([["ok", 3]]));
  });

  it("spreads its questions, so that replicas do not ask together", async () => {
    const rig = new PolledRig();
    rig.draw = 0;
    await settlePromises();
    rig.draw = 1;
    await rig.pass(15_000);
    const [early, late] = [1 - pollSpreadRatio / 2, 1 + pollSpreadRatio / 2];
    expect(rig.askedMs.slice(0, 3)).toEqual([0, 5_000 * early, 5_000 * early + 5_000 * late]);
  });

  it("gives a question up in time, and has no use for an answer that comes later", async () => {
    const rig = new PolledRig();
    rig.says = "hangs";
    await rig.pass(5_500);
    expect(rig.askedMs).toEqual([0, 5_000]);
    rig.says = 6;
    await rig.pass(2_000);
    rig.answerLate(99);
    await rig.pass(4_000);
    expect(rig.readings).toEqual([5, 6]);
    expect(rig.poller.countByOutcome).toEqual(
      new Map([
        ["ok", 2],
        ["SIGNAL_TIMEOUT", 1],
      ]),
    );
  });

  it("holds the last reading through a failure, then the bound, and tells each once", async () => {
    const rig = new PolledRig();
    await settlePromises();
    rig.says = "SIGNAL_REFUSED";
    await rig.pass(29_500);
    expect([rig.readings, rig.poller.isMissing, rig.poller.ageMs()]).toEqual([[5], false, 29_500]);
    await rig.pass(10_000);
    expect([rig.readings, rig.poller.isMissing]).toEqual([[5, "max"], true]);
    rig.says = 7;
    await rig.pass(5_000);
    expect([rig.readings, rig.poller.isMissing]).toEqual([[5, "max", 7], false]);
    expect(rig.eventKinds).toEqual(["signalFailing", "signalMissing", "signalFound"]);
  });

  it("tells failures seldom, however often a source fails and answers", async () => {
    const rig = new PolledRig(500);
    for (let i = 0; i < 60; i += 1) {
      rig.says = i % 2 === 0 ? "SIGNAL_REFUSED" : "SIGNAL_EMPTY";
      if (i % 3 === 0) rig.says = 5;
      await rig.pass(500);
    }
    const tellings = 30_000 / failureReportedMsMin;
    expect(rig.events.length).toBeGreaterThanOrEqual(tellings);
    expect(rig.events.length).toBeLessThanOrEqual(2 * tellings + 1);
  });

  it("asks nobody and tells nothing once it is closed", async () => {
    const rig = new PolledRig();
    rig.says = "hangs";
    await rig.pass(5_500);
    rig.poller.close();
    rig.answerLate(9);
    await rig.pass(60_000);
    expect([rig.askedMs.length, rig.readings, rig.clock.timerCount]).toEqual([2, [5], 0]);
  });

  it("is settled by a close, too", async () => {
    const rig = new PolledRig();
    rig.poller.close();
    await rig.poller.settled;
    expect(rig.readings).toEqual([]);
  });
});
