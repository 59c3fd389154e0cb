import { describe, expect, it } from "vitest";
import { type LogEvent, silentLogger } from "../../../../src/app/base/logger.js";
import { FleetJournal } from "../../../../src/app/fleet/fleet-loop.js";
import { testFleetSnapshot, testShares } from "../../../support/fleet-reports.js";

function createJournal() {
  const infos: LogEvent[] = [];
  const warnings: LogEvent[] = [];
  const journal = new FleetJournal({
    ...silentLogger,
    info: (event) => infos.push(event),
    warn: (event) => warnings.push(event),
  });
  const limit = (value: number, gate: "open" | "closed" = "open"): void => {
    const shares = new Map([["node-1", { default: 1, high: 0 }]]);
    const services = new Map([["orders", testShares({ limit: value, gate, shares })]]);
    journal.noteSnapshot(testFleetSnapshot({ services }).snapshot);
  };
  const overflow = (overflowPerSecond: number): void => {
    const facts = { inFlight: 9, rps: 90, overflowPerSecond };
    const shares = new Map([
      ["node-1", { default: 4, high: 2 }],
      ["node-2", { default: 3, high: 1 }],
    ]);
    const services = new Map([["orders", testShares({ limit: 10, facts, shares })]]);
    journal.noteSnapshot(testFleetSnapshot({ services }).snapshot);
  };
  return { infos, warnings, journal, limit, overflow };
}

describe("FleetJournal", () => {
  it("tells who leads, and warns while nobody can", () => {
    const { infos, warnings, journal } = createJournal();
    journal.note({ kind: "leadingBegan", term: 3 });
    journal.note({ kind: "leaderChanged", term: 3, leaderId: "a1" });
    journal.note({ kind: "leaseLost", code: "STORE_UNAVAILABLE" });
    journal.note({ kind: "leadingEnded", term: 3, cause: "lapsed" });
    journal.note({ kind: "snapshotLost", term: 3 });
    journal.note({ kind: "fleetUnreadable", what: "snapshot" });
    journal.note({ kind: "leaseFound" });
    journal.note({ kind: "snapshotFound", term: 4 });
    expect(infos).toEqual([
      { event: "leadingBegan", term: 3 },
      { event: "leaderChanged", term: 3, leaderId: "a1" },
      { event: "leadingEnded", term: 3, cause: "lapsed" },
      { event: "leaseFound" },
      { event: "snapshotFound", term: 4 },
    ]);
    expect(warnings).toEqual([
      expect.objectContaining({ event: "leaseLost", code: "STORE_UNAVAILABLE" }),
      { event: "snapshotLost", term: 3 },
      { event: "fleetUnreadable", what: "snapshot" },
    ]);
  });

  it("warns once when breakers refuse requests, and tells when that is over", () => {
    const { infos, warnings, overflow } = createJournal();
    for (const perSecond of [0, 12, 7, 0, 0, 3]) overflow(perSecond);
    for (let i = 0; i < 9; i += 1) overflow(0);
    const kinds = (): readonly unknown[] =>
      [...warnings, ...infos]
        .map(({ event }) => event)
        .filter((one) => one !== "fleetLimitChanged");
    expect(kinds()).toEqual(["overflowBegan"]);
    const reported = { service: "orders", limit: 10, reservedHigh: 3, overflowPerSecond: 12 };
    expect(warnings[0]).toMatchObject(reported);
    overflow(0);
    expect(kinds()).toEqual(["overflowBegan", "overflowEnded"]);
    overflow(1);
    expect(warnings).toHaveLength(2);
  });

  it("tells of a limit when it has moved by a fifth since it was told of, and of a gate", () => {
    const { infos, limit } = createJournal();
    for (const value of [100, 110, 119, 120, 110, 97, 96]) limit(value);
    limit(96, "closed");
    expect(infos.map(({ limit: value, before, gate }) => [before, value, gate])).toEqual([
      [undefined, 100, "open"],
      [100, 120, "open"],
      [120, 96, "open"],
      [96, 96, "closed"],
    ]);
    expect(JSON.stringify(infos)).not.toContain("node-1");
  });
});
