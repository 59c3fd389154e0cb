import { describe, expect, it } from "vitest";
import {
  defaultHeartbeatMs,
  defaultLeaseMs,
  Membership,
  type MembershipEvent,
} from "../../../../src/fleet/claims/membership.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FakeConnection } from "../../../support/fake-connection.js";
import { FakeRandom } from "../../../support/fake-random.js";

function createMembership() {
  const clock = new FakeClock();
  const connection = new FakeConnection();
  const events: MembershipEvent[] = [];
  const membership = new Membership({
    connection,
    clock,
    random: new FakeRandom(3),
    keyPrefix: "headgate:",
    onEvent: (event) => events.push(event),
  });
  return { clock, connection, events, membership };
}

describe("Membership", () => {
  it("joins at once, and says so again every second", async () => {
    const { clock, connection, membership } = createMembership();
    await settlePromises();
    expect(connection.calls).toHaveLength(1);
    await clock.advanceAsync(10 * defaultHeartbeatMs, 50);
    expect(connection.calls).toHaveLength(11);
    const [first] = connection.calls;
    expect(first?.keys).toEqual(["headgate:fleet:replicas"]);
    expect(first?.args[1]).toBe(String(defaultLeaseMs));
    expect(new Set(connection.calls.map((call) => call.args[0])).size).toBe(1);
    await membership.stop();
  });

  it("knows of itself before anybody answered, and then of those who are live", async () => {
    const { clock, connection, events, membership } = createMembership();
    expect(membership.liveReplicas()).toBe(1);
    await settlePromises();
    connection.answer = { kind: "reply", reply: 5 };
    await clock.advanceAsync(1_000);
    expect(membership.liveReplicas()).toBe(5);
    await clock.advanceAsync(3_000, 1_000);
    expect(events).toEqual([{ kind: "fleetSizeChanged", liveReplicaCount: 5 }]);
    await membership.stop();
  });

  it("keeps the last known number while the store is away, and tells of it once", async () => {
    const { clock, connection, events, membership } = createMembership();
    await settlePromises();
    connection.answer = { kind: "reply", reply: 4 };
    await clock.advanceAsync(1_000);
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    await clock.advanceAsync(60_000, 500);
    expect(membership.liveReplicas()).toBe(4);
    connection.answer = { kind: "reply", reply: 3 };
    await clock.advanceAsync(1_000);
    expect(membership.liveReplicas()).toBe(3);
    expect(events.map((event) => event.kind)).toEqual([
      "fleetSizeChanged",
      "fleetLost",
      "fleetFound",
      "fleetSizeChanged",
    ]);
    await membership.stop();
  });

  it("never has two heartbeats under way", async () => {
    const { clock, connection, membership } = createMembership();
    await settlePromises();
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(10_000, 500);
    expect(connection.calls).toHaveLength(2);
    connection.answer = { kind: "reply", reply: 2 };
    connection.release();
    await clock.advanceAsync(500, 50);
    expect(connection.calls.length).toBeGreaterThan(2);
    await membership.stop();
  });

  it("takes no count below one, for it is live itself", async () => {
    const { clock, connection, membership } = createMembership();
    await settlePromises();
    connection.answer = { kind: "reply", reply: 0 };
    await clock.advanceAsync(1_000);
    expect(connection.calls).toHaveLength(2);
    expect(membership.liveReplicas()).toBe(1);
    await membership.stop();
  });

  it("counts an answer that is no number as a failure", async () => {
    const { clock, connection, events, membership } = createMembership();
    await settlePromises();
    connection.answer = { kind: "reply", reply: Buffer.from("2") };
    await clock.advanceAsync(1_000);
    expect(events).toEqual([{ kind: "fleetLost", code: "STORE_PROTOCOL" }]);
    await membership.stop();
  });

  it("leaves at stop(), after the heartbeat under way, and leaves no timer", async () => {
    const { clock, connection, membership } = createMembership();
    await settlePromises();
    connection.answer = { kind: "hangs" };
    await clock.advanceAsync(1_000);
    const stopped = membership.stop();
    await settlePromises();
    const joinCount = connection.calls.length;
    connection.answer = { kind: "reply", reply: 1 };
    connection.release();
    await stopped;
    await membership.stop();
    expect(connection.calls.slice(joinCount).map((call) => call.script.name)).toEqual([
      "fleet-leave",
    ]);
    expect(clock.timerCount).toBe(0);
  });

  it("stops although the store is away, and asks it for nothing more", async () => {
    const { clock, connection, membership } = createMembership();
    connection.answer = { kind: "fails", code: "STORE_UNAVAILABLE" };
    await membership.stop();
    const names = connection.calls.map((call) => call.script.name);
    expect(names.filter((name) => name === "fleet-leave")).toHaveLength(1);
    expect(names.at(-1)).toBe("fleet-leave");
    expect(clock.timerCount).toBe(0);
    await clock.advanceAsync(10 * defaultHeartbeatMs, 50);
    expect(connection.calls).toHaveLength(names.length);
  });
});
