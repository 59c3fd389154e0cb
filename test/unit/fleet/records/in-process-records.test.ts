import { describe, expect, it } from "vitest";
import { InProcessRecords } from "../../../../src/fleet/records/in-process-records.js";
import { auditEntriesMax } from "../../../../src/fleet/records/shared-records.js";
import { FakeClock } from "../../../support/fake-clock.js";

describe("InProcessRecords", () => {
  it("keeps the newest entries of its audit log, and no more than its bound", async () => {
    const records = new InProcessRecords(new FakeClock());
    const entryCount = auditEntriesMax + 3;
    for (let i = 1; i <= entryCount; i += 1) await records.note({ action: "ResetKey" });
    const numberOf = async (before: number): Promise<number | undefined> => {
      return (await records.audit(before, 1))[0]?.number;
    };
    expect(await numberOf(Number.POSITIVE_INFINITY)).toBe(entryCount);
    // The first three have left, and their numbers are nobody's.
    expect(await numberOf(5)).toBe(4);
    expect(await numberOf(4)).toBeUndefined();
  });
});
