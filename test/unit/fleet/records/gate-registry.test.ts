import { beforeEach, describe, expect, it } from "vitest";
import { defaultGateSettings } from "../../../../src/core/admission/gate.js";
import { GateRegistry, thresholdsToJson } from "../../../../src/fleet/records/gate-registry.js";
import type { SharedRecords } from "../../../../src/fleet/records/shared-records.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";

let records: SharedRecords;
let gates: GateRegistry;

beforeEach(() => {
  records = memoryRecords(new FakeClock());
  gates = new GateRegistry(records);
});

function put(openBelowRatio: number, closeAboveRatio: number, expectedVersion = 0) {
  const facts = { author: "ann", reason: "a test", setEpochMs: 1 };
  const value = thresholdsToJson({ openBelowRatio, closeAboveRatio, ...facts });
  return records.change({ kind: "gate", id: "orders", value, expectedVersion, audit: undefined });
}

describe("GateRegistry", () => {
  it("answers what an operator has set, until it is cleared", async () => {
    expect(gates.settingsOf("orders", defaultGateSettings)).toBe(defaultGateSettings);
    await put(0.1, 0.2);
    const changed = { ...defaultGateSettings, openBelowRatio: 0.1, closeAboveRatio: 0.2 };
    expect(gates.settingsOf("orders", defaultGateSettings)).toEqual(changed);
    expect(gates.settingsOf("other", defaultGateSettings)).toBe(defaultGateSettings);
    expect(gates.find("orders")).toMatchObject({ author: "ann", reason: "a test", version: 1 });
    const gone = { kind: "gate", id: "orders", value: undefined, audit: undefined } as const;
    await records.change({ ...gone, expectedVersion: 1 });
    expect(gates.settingsOf("orders", defaultGateSettings)).toBe(defaultGateSettings);
  });

  it("leaves the policy's own where a record makes no gate", async () => {
    await put(0.8, 0.2);
    expect(gates.settingsOf("orders", defaultGateSettings)).toBe(defaultGateSettings);
  });

  it("leaves out records that are none of ours, and says how many", async () => {
    const value = { openBelowRatio: "low" };
    const change = { kind: "gate", id: "orders", value, expectedVersion: 0 } as const;
    await records.change({ ...change, audit: undefined });
    expect(gates.find("orders")).toBeUndefined();
    expect([gates.count, gates.unreadableCount]).toEqual([0, 1]);
  });

  it("tells of changes of gates, and of nothing after its end", async () => {
    let reportedCount = 0;
    const stop = gates.onChange(() => {
      reportedCount += 1;
    });
    const { version } = gates;
    await put(0.1, 0.2);
    expect(reportedCount).toBe(1);
    expect(gates.version).not.toBe(version);
    const other = { kind: "override", id: "o", value: {}, expectedVersion: 0 } as const;
    await records.change({ ...other, audit: undefined });
    expect(reportedCount).toBe(1);
    stop();
    gates.close();
    await put(0.1, 0.3, 1);
    expect(reportedCount).toBe(1);
    expect(gates.find("orders")?.closeAboveRatio).toBe(0.2);
  });
});
