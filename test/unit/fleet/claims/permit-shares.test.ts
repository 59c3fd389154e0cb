import { describe, expect, it } from "vitest";
import {
  defaultShareHeartbeatMs,
  defaultShareLeaseMs,
  PermitShares,
  type PermitSharesEvent,
  sharesMax,
} from "../../../../src/fleet/claims/permit-shares.js";
import { permitClaimsMax } from "../../../../src/store/coordination/permit-store.js";
import { RedisPermits } from "../../../../src/store/redis/coordination/redis-permits.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { TestHolder } from "../../../support/permit-holder.js";

function createShares(replicaCount = 3) {
  const clock = new FakeClock();
  const connection = new FakeConnection();
  const events: PermitSharesEvent[] = [];
  const parts = { clock, random: new FakeRandom(5) };
  const shares = new PermitShares({
    ...parts,
    store: new RedisPermits({ ...parts, connection, keyPrefix: "headgate:" }),
    replicaCount: () => replicaCount,
    onEvent: (event) => events.push(event),
  });
  const reply = (text: string): void => {
    connection.answer = { kind: "reply", reply: Buffer.from(text) };
  };
  /** What may be held of each limit of 30, while nobody else has any of it in use. */
  const answer = (granted: string): void => {
    reply(
      granted
        .split(" ")
        .map((count) => `${count} 0 30`)
        .join(" "),
    );
  };
  const fail = (): void => {
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
  };
  const beat = (): Promise<void> => clock.advanceAsync(defaultShareHeartbeatMs, 50);
  /** Limit, held and needed, as the last heartbeat told them of its first limit. */
  const reported = (): readonly number[] =>
    (connection.calls.at(-1)?.args.slice(3, 6) ?? []).map(Number);
  return { clock, connection, events, shares, reply, answer, fail, beat, reported };
}

describe("PermitShares", () => {
  it("asks for a limit at once and every 250 ms, each time under a higher number", async () => {
    const { clock, connection, shares, answer } = createShares();
    answer("10");
    shares.open(new TestHolder("orders", 30));
    await clock.advanceAsync(10 * defaultShareHeartbeatMs, 50);
    expect(connection.calls).toHaveLength(11);
    const [first] = connection.calls;
    expect(first?.keys).toEqual(["headgate:{permits}:orders"]);
    expect(first?.args.slice(1, 3)).toEqual(["1", String(defaultShareLeaseMs)]);
    expect(connection.calls.map((call) => call.args[1])).toEqual(
      Array.from({ length: 11 }, (_, i) => String(i + 1)),
    );
    expect(new Set(connection.calls.map((call) => call.args[0])).size).toBe(1);
    await shares.stop();
  });

  it("asks nothing while nothing is shared", async () => {
    const { clock, connection, shares, answer } = createShares();
    answer("10");
    await clock.advanceAsync(5_000, 250);
    expect(connection.calls).toHaveLength(0);
    const share = shares.open(new TestHolder("orders", 30));
    await clock.advanceAsync(1_000, 250);
    share.close();
    await clock.advanceAsync(5_000, 250);
    expect(connection.calls.length).toBeLessThan(7);
    expect(clock.timerCount).toBe(0);
  });

  it("holds what it was answered, and tells of the most of that and what is in use", async () => {
    const { clock, shares, answer, beat, reported } = createShares();
    const holder = new TestHolder("orders", 30);
    answer("12");
    const share = shares.open(holder);
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(12);
    expect(reported()).toEqual([30, 12, 0]);
    for (let i = 0; i < 12; i += 1) holder.take(12);
    answer("5");
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(5);
    await beat();
    expect(reported()).toEqual([30, 12, 12]);
    for (let i = 0; i < 9; i += 1) holder.giveBack();
    await beat();
    expect(reported().slice(0, 2)).toEqual([30, 5]);
    await shares.stop();
  });

  it("tells only of what is in use before the first answer", async () => {
    const { clock, shares, answer, fail, beat, reported } = createShares();
    const holder = new TestHolder("orders", 30);
    holder.take(30);
    fail();
    shares.open(holder);
    await beat();
    expect(reported()).toEqual([30, 1, 1]);
    answer("10");
    await clock.advanceAsync(1_000, 250);
    expect(reported().slice(0, 2)).toEqual([30, 10]);
    await shares.stop();
  });

  it("says when more may be in use, and only then", async () => {
    const { shares, answer, beat } = createShares();
    const holder = new TestHolder("orders", 30);
    const counts: number[] = [];
    for (const text of ["12", "12", "5", "6"]) {
      answer(text);
      if (counts.length === 0) shares.open(holder);
      await beat();
      counts.push(holder.grownCount);
    }
    expect(counts).toEqual([1, 1, 1, 2]);
    await shares.stop();
  });

  it("keeps telling a need until a heartbeat was answered", async () => {
    const { shares, fail, answer, beat, reported } = createShares();
    const holder = new TestHolder("orders", 30);
    answer("2");
    shares.open(holder);
    await beat();
    for (let i = 0; i < 7; i += 1) holder.take(2);
    fail();
    await beat();
    expect(reported()).toEqual([30, 2, 7]);
    holder.giveBack();
    holder.giveBack();
    await beat();
    expect(reported()).toEqual([30, 2, 7]);
    answer("7");
    await beat();
    await beat();
    expect(reported()).toEqual([30, 7, 0]);
    await shares.stop();
  });

  it("divides by the number of replicas when its lease ends, and tells of it once", async () => {
    const { clock, events, shares, answer, fail, beat } = createShares(4);
    answer("12");
    const share = shares.open(new TestHolder("orders", 30));
    await beat();
    fail();
    // The lease counts from the sending of the last heartbeat that was answered.
    const sentMs = clock.monotonicMs();
    await clock.advanceAsync(defaultShareLeaseMs - 1, 50);
    expect(share.permits(sentMs + defaultShareLeaseMs - 1)).toBe(12);
    expect(share.permits(sentMs + defaultShareLeaseMs)).toBe(7);
    expect(events).toEqual([]);
    await clock.advanceAsync(5_000, 250);
    expect(events).toEqual([{ kind: "sharesLost", code: "STORE_UNAVAILABLE" }]);
    answer("9");
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(9);
    expect(events.map(({ kind }) => kind)).toEqual(["sharesLost", "sharesFound"]);
    await shares.stop();
  });

  it("is settled when it has a share, or has had none for a lease", async () => {
    for (const gets of [true, false]) {
      const { clock, connection, shares, answer, beat } = createShares();
      answer("0");
      shares.open(new TestHolder("orders", 30));
      let isSettled = false;
      void shares.settled().then(() => {
        isSettled = true;
      });
      await clock.advanceAsync(4 * defaultShareHeartbeatMs, 50);
      expect(isSettled).toBe(false);
      // What others hold comes with their heartbeats: nothing is gained by asking more often.
      expect(connection.calls).toHaveLength(5);
      if (gets) answer("10");
      if (gets) await beat();
      else await clock.advanceAsync(defaultShareLeaseMs, 50);
      expect(isSettled).toBe(true);
      await shares.stop();
    }
  });

  it("tells once of calls of which one fails at each heartbeat", async () => {
    const { clock, connection, events, shares, answer } = createShares();
    // As many numbers as the first call asks for, and too many for the second one.
    const numbers = Array.from({ length: permitClaimsMax }, () => "1");
    answer(numbers.join(" "));
    const opened = Array.from({ length: permitClaimsMax + 1 }, (_, i) =>
      shares.open(new TestHolder(`limit ${i}`, 30)),
    );
    await clock.advanceAsync(2 * defaultShareLeaseMs, 250);
    expect(connection.calls.length).toBeGreaterThan(10);
    expect(events).toEqual([{ kind: "sharesLost", code: "STORE_PROTOCOL" }]);
    opened.at(-1)?.close();
    await clock.advanceAsync(1_000, 250);
    expect(events.map(({ kind }) => kind)).toEqual(["sharesLost", "sharesFound"]);
    await shares.stop();
  });

  it("holds at least one when nobody answers, however many replicas there are", async () => {
    const { clock, shares, fail, beat } = createShares(100);
    fail();
    const share = shares.open(new TestHolder("orders", 30));
    expect(share.permits(clock.monotonicMs())).toBe(1);
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(1);
    await shares.stop();
  });

  it("tells what others have in use, and while nobody tells, takes it to be as much", async () => {
    const { clock, shares, reply, fail, beat } = createShares();
    const holder = new TestHolder("orders", 30);
    reply("12 7 30");
    const share = shares.open(holder);
    await beat();
    expect(share.othersInUse(clock.monotonicMs())).toBe(7);
    fail();
    for (let i = 0; i < 4; i += 1) holder.take(30);
    await clock.advanceAsync(defaultShareLeaseMs + defaultShareHeartbeatMs, 250);
    // Three replicas.
    expect(share.othersInUse(clock.monotonicMs())).toBe(8);
    await shares.stop();
  });

  it("leaves an answer aside that was overtaken", async () => {
    const { clock, shares, answer, beat } = createShares();
    answer("12");
    const share = shares.open(new TestHolder("orders", 30));
    await beat();
    answer("-1");
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(12);
    await shares.stop();
  });

  it.each(["", "x", "1 2", "1 2 x", "1.5 0 30", "-2 0 30"])("takes no answer %j", async (text) => {
    const { clock, events, shares, reply, beat } = createShares();
    reply(text);
    const share = shares.open(new TestHolder("orders", 30));
    await beat();
    expect(share.permits(clock.monotonicMs())).toBe(10);
    expect(events).toEqual([{ kind: "sharesLost", code: "STORE_PROTOCOL" }]);
    await shares.stop();
  });

  it("asks for many limits in several calls, and leaves those above its bound alone", async () => {
    const { clock, connection, shares, answer, beat } = createShares();
    answer(Array.from({ length: permitClaimsMax }, () => "1").join(" "));
    const holders = Array.from({ length: sharesMax + 1 }, (_, i) => new TestHolder(`s${i}`, 30));
    const opened = holders.map((holder) => shares.open(holder));
    await beat();
    expect(connection.calls).toHaveLength((2 * sharesMax) / permitClaimsMax);
    const [first, last] = [opened[0], opened.at(-1)];
    expect(first?.permits(clock.monotonicMs())).toBe(1);
    expect(last?.permits(clock.monotonicMs())).toBe(10);
    await shares.stop();
  });

  it("tells at once of a limit that is opened during a heartbeat", async () => {
    const { connection, shares, answer, clock } = createShares();
    connection.answer = { kind: "hangs" };
    shares.open(new TestHolder("orders", 30));
    await clock.advanceAsync(0, 1);
    clock.advance(1);
    await settlePromises();
    expect(connection.calls).toHaveLength(1);
    shares.open(new TestHolder("carts", 30));
    answer("4");
    connection.release();
    await settlePromises();
    answer("4 4");
    await clock.advanceAsync(10, 1);
    expect(connection.calls.map((call) => call.keys.length)).toEqual([1, 2]);
    await shares.stop();
  });

  it("says when each limit was asked for, whether well or not", async () => {
    const { clock, shares, fail } = createShares();
    fail();
    let isSettled = false;
    shares.open(new TestHolder("orders", 30));
    const settled = shares.settled().then(() => {
      isSettled = true;
    });
    await settlePromises();
    expect(isSettled).toBe(false);
    await clock.advanceAsync(10, 5);
    expect(isSettled).toBe(true);
    await settled;
    await shares.stop();
    await shares.settled();
  });

  it("gives all back at stop(), after the heartbeat under way, and leaves no timer", async () => {
    const { clock, connection, shares, answer } = createShares();
    answer("10");
    shares.open(new TestHolder("orders", 30));
    await clock.advanceAsync(200, 50);
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(100, 50);
    const stopped = shares.stop();
    await settlePromises();
    const beatCount = connection.calls.length;
    answer("10");
    connection.release();
    await stopped;
    await shares.stop();
    expect(connection.calls.slice(beatCount).map((call) => call.script.name)).toEqual([
      "permit-shares-leave",
    ]);
    expect(clock.timerCount).toBe(0);
    const late = shares.open(new TestHolder("late", 30));
    expect(late.permits(clock.monotonicMs())).toBe(10);
    expect(clock.timerCount).toBe(0);
  });

  it("stops although the store is away, and asks it for nothing more", async () => {
    const { clock, connection, shares, fail } = createShares();
    fail();
    const share = shares.open(new TestHolder("orders", 30));
    await shares.stop();
    expect(connection.calls.map((call) => call.script.name)).toEqual(["permit-shares-leave"]);
    // Nobody waits for a share that cannot come, and a limit is divided by the replicas.
    await shares.settled();
    expect(share.permits(clock.monotonicMs())).toBe(10);
    expect(clock.timerCount).toBe(0);
    await clock.advanceAsync(10 * defaultShareHeartbeatMs, 50);
    expect(connection.calls).toHaveLength(1);
  });
});
