import { describe, expect, it } from "vitest";
import {
  AuditCounts,
  AuditedRecords,
  auditMetric,
} from "../../../../src/app/foundation/operator-records.js";
import { ServiceError } from "../../../../src/core/base/errors.js";
import { ReplicatedRecords } from "../../../../src/fleet/records/replicated-records.js";
import { MemoryRecords } from "../../../../src/store/coordination/memory-records.js";
import { recordsMax } from "../../../../src/store/coordination/record-store.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { memoryRecords } from "../../../support/memory-records.js";

const gate = { kind: "gate", id: "orders", value: { open: 1 }, expectedVersion: 0 } as const;
const audit = { action: "SetGateThresholds" };

function opened(records = memoryRecords(new FakeClock())) {
  const counts = new AuditCounts();
  return { counts, audited: new AuditedRecords(records, counts) };
}

describe("AuditedRecords", () => {
  it("counts entries by action and outcome", async () => {
    const { counts, audited } = opened();
    expect(await audited.change({ ...gate, audit })).toMatchObject({ kind: "changed" });
    await audited.change({ ...gate, audit });
    await audited.change({ ...gate, audit });
    await audited.note({ action: "ResetKey" });
    expect([...counts.entries()]).toEqual([
      { action: "SetGateThresholds", outcome: "written", count: 1 },
      { action: "SetGateThresholds", outcome: "conflict", count: 2 },
      { action: "ResetKey", outcome: "written", count: 1 },
    ]);
    expect((await audited.audit(Number.POSITIVE_INFINITY, 10)).length).toBe(2);
    expect(audited.list("gate").get("orders")?.value).toEqual({ open: 1 });
  });

  it("counts no change that nobody notes", async () => {
    const { counts, audited } = opened();
    await audited.change({ ...gate, audit: undefined });
    expect([...counts.entries()]).toEqual([]);
  });

  it("says when there are as many as there may be", async () => {
    const { counts, audited } = opened();
    for (let i = 0; i <= recordsMax.policy; i += 1) {
      await audited.change({ ...gate, kind: "policy", id: `p${i}`, audit });
    }
    expect([...counts.entries()]).toContainEqual({
      action: "SetGateThresholds",
      outcome: "full",
      count: 1,
    });
  });

  it("counts what nobody knows the end of, and throws on", async () => {
    class Failing extends MemoryRecords {
      override async change(): Promise<never> {
        throw new ServiceError("STORE_TIMEOUT");
      }
    }
    const clock = new FakeClock();
    const store = new Failing(clock);
    const records = new ReplicatedRecords({ store, clock, random: new FakeRandom() });
    const { counts, audited } = opened(records);
    await expect(audited.change({ ...gate, audit })).rejects.toMatchObject({
      code: "STORE_TIMEOUT",
    });
    const rows: unknown[] = [];
    auditMetric(counts).read((count, labels) => rows.push([count, labels]));
    expect(rows).toEqual([[1, { action: "SetGateThresholds", outcome: "unknown" }]]);
  });
});
