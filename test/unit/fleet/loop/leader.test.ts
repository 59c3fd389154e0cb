import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/core/base/errors.js";
import {
  defaultLeaderHeartbeatMs,
  defaultLeaderLeaseMs,
  Leader,
  type LeaderEvent,
} from "../../../../src/fleet/loop/leader.js";
import type { SnapshotVersion } from "../../../../src/fleet/loop/snapshot-version.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";

/** What the script would answer. */
const says = (text: string) => ({ kind: "reply", reply: Buffer.from(text) }) as const;

function createLeader(answer = "0 ") {
  const clock = new FakeClock();
  const connection = new FakeConnection();
  connection.answer = says(answer);
  const events: LeaderEvent[] = [];
  const newest: (SnapshotVersion | undefined)[] = [];
  const leader = new Leader({
    connection,
    clock,
    id: "c0ffee",
    keyPrefix: "headgate:",
    seen: () => ({ term: 6, leaderId: "5eed", version: 3 }),
    onBeat: (rank) => newest.push(rank),
    onEvent: (event) => events.push(event),
  });
  return { clock, connection, events, newest, leader };
}

const argsOf = ({ calls }: FakeConnection): unknown => calls.at(-1)?.args;

describe("Leader", () => {
  it("says four times a second who it is, what it leads and what it has seen", async () => {
    const { clock, connection, leader } = createLeader();
    await settlePromises();
    expect(connection.calls[0]?.keys).toEqual([
      "headgate:{fleet}:lease",
      "headgate:{fleet}:term",
      "headgate:{fleet}:rank",
    ]);
    expect(argsOf(connection)).toEqual(["c0ffee", "1", "0", "3000", "6", "5eed"]);
    connection.answer = says("7 ");
    await clock.advanceAsync(defaultLeaderHeartbeatMs);
    await clock.advanceAsync(750, 50);
    expect(connection.calls).toHaveLength(5);
    expect(argsOf(connection)).toEqual(["c0ffee", "5", "7", "3000", "6", "5eed"]);
    await leader.stop();
  });

  it("leads while it renews its lease, and not a moment longer", async () => {
    const { clock, connection, events, leader } = createLeader("7 ");
    await settlePromises();
    expect(leader.term).toBe(7);
    await clock.advanceAsync(60_000, 250);
    expect(leader.term).toBe(7);
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    await clock.advanceAsync(defaultLeaderLeaseMs - 1, 250);
    expect(leader.term).toBe(7);
    clock.stall(1);
    expect(leader.term).toBeUndefined();
    expect(leader.untilMs).toBeUndefined();
    expect(events).toEqual([
      { kind: "leadingBegan", term: 7 },
      { kind: "leaseLost", code: "STORE_UNAVAILABLE" },
      { kind: "leadingEnded", term: 7, cause: "lapsed" },
    ]);
    await leader.stop();
  });

  it("counts its lease from before it asked, however long the answer took", async () => {
    const { clock, connection, leader } = createLeader("7 ");
    connection.answer = { kind: "hangs" };
    await settlePromises();
    await clock.advanceAsync(250);
    const askedMs = clock.monotonicMs();
    clock.stall(900);
    connection.answer = says("7 ");
    connection.release();
    await settlePromises();
    expect(leader.untilMs).toBeLessThanOrEqual(askedMs + defaultLeaderLeaseMs);
    await leader.stop();
  });

  it("does not go on with a term that was over before its renewal was answered", async () => {
    const { clock, connection, events, leader } = createLeader("7 ");
    await settlePromises();
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(250);
    clock.stall(defaultLeaderLeaseMs);
    expect(leader.term).toBeUndefined();
    connection.answer = says("7 ");
    connection.release();
    await settlePromises();
    expect(leader.term).toBeUndefined();
    connection.answer = says("8 ");
    await clock.advanceAsync(250);
    expect(argsOf(connection)).toContain("0");
    expect(leader.term).toBe(8);
    expect(events.map(({ kind }) => kind)).toEqual([
      "leadingBegan",
      "leadingEnded",
      "leadingBegan",
    ]);
    await leader.stop();
  });

  it("ends its term when the store knows another leader, or gives it another term", async () => {
    const { clock, connection, events, leader } = createLeader("7 ");
    await settlePromises();
    connection.answer = says("9 ");
    await clock.advanceAsync(250);
    expect(leader.term).toBe(9);
    connection.answer = says("0 10 abc 4");
    await clock.advanceAsync(250);
    expect(leader.term).toBeUndefined();
    expect(events).toEqual([
      { kind: "leadingBegan", term: 7 },
      { kind: "leadingEnded", term: 7, cause: "outranked" },
      { kind: "leadingBegan", term: 9 },
      { kind: "leadingEnded", term: 9, cause: "outranked" },
    ]);
    await leader.stop();
  });

  it("ends at once when a write of this term was refused", async () => {
    const { leader } = createLeader("7 ");
    await settlePromises();
    leader.noteOutranked(6);
    expect(leader.term).toBe(7);
    leader.noteOutranked(7);
    expect(leader.term).toBeUndefined();
    await leader.stop();
  });

  it("hands on the rank of the newest snapshot, and fails on an answer that is none", async () => {
    const { clock, connection, events, newest, leader } = createLeader();
    await settlePromises();
    connection.answer = says("0 7 abc 41");
    await clock.advanceAsync(250);
    expect(newest).toEqual([undefined, { term: 7, leaderId: "abc", version: 41 }]);
    for (const reply of ["", "7", "-1 ", "7 node 1", "1 1 1 1 1"]) {
      connection.answer = says(reply);
      await clock.advanceAsync(250);
    }
    expect(newest).toHaveLength(2);
    expect(events).toEqual([{ kind: "leaseLost", code: "STORE_PROTOCOL" }]);
    connection.answer = says("0 ");
    await clock.advanceAsync(250);
    expect(events.at(-1)).toEqual({ kind: "leaseFound" });
    await leader.stop();
  });

  it("has one heartbeat under way, and gives it up after a third of the lease", async () => {
    const { clock, connection, leader } = createLeader();
    await settlePromises();
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(2_000, 250);
    expect(connection.calls).toHaveLength(2);
    const [, second] = connection.calls;
    expect(second?.deadlineMs).toBe(1_250 + defaultLeaderLeaseMs / 3);
    connection.answer = says("0 ");
    connection.release();
    await settlePromises();
    await leader.stop();
  });

  it("gives the lease back when it stops, after the heartbeat that is under way", async () => {
    const { clock, connection, events, leader } = createLeader("7 ");
    await settlePromises();
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(250);
    const stopping = leader.stop();
    expect(leader.term).toBeUndefined();
    await settlePromises();
    expect(connection.calls.at(-1)?.script.name).toBe("fleet-lease");
    connection.answer = says("7 ");
    connection.release();
    await stopping;
    expect(connection.calls.at(-1)?.script.name).toBe("fleet-resign");
    expect(leader.term).toBeUndefined();
    expect(events.at(-1)).toEqual({ kind: "leadingEnded", term: 7, cause: "stopped" });
    expect(clock.timerCount).toBe(0);
    await leader.stop();
  });

  it("stops quietly while the store is away", async () => {
    const { connection, events, leader } = createLeader();
    await settlePromises();
    connection.answer = { kind: "fails", code: "STORE_TIMEOUT" };
    await leader.stop();
    expect(events).toEqual([{ kind: "leaseLost", code: new ServiceError("STORE_TIMEOUT").code }]);
  });
});
