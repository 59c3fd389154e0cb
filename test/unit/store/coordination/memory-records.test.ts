import { describe, expect, it } from "vitest";
import { MemoryRecords } from "../../../../src/store/coordination/memory-records.js";
import {
  auditEntriesMax,
  goneRecordsMax,
  pageRecordsMax,
} from "../../../../src/store/coordination/record-store.js";
import { FakeClock } from "../../../support/fake-clock.js";

async function opened() {
  const records = new MemoryRecords(new FakeClock());
  return { records, state: await records.state() };
}

describe("MemoryRecords", () => {
  it("keeps the newest entries of its audit log, and no more than its bound", async () => {
    const { records } = await opened();
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

  it("has all read anew by one who missed more than is remembered as taken away", async () => {
    const { records, state } = await opened();
    const change = async (id: string, value: object | undefined, expectedVersion: number) => {
      const seen = { state, version: 0 };
      const given = value === undefined ? undefined : {};
      const facts = { kind: "override", audit: undefined, name: id + expectedVersion } as const;
      const outcome = await records.change({ ...facts, id, value: given, expectedVersion, seen });
      return outcome?.kind === "changed" ? outcome.version : 0;
    };
    await change("stays", {}, 0);
    for (let i = 0; i <= goneRecordsMax; i += 1) {
      await change(`r${i}`, undefined, await change(`r${i}`, {}, 0));
    }
    const read = (version: number) => records.read("override", { state, version });
    const page = await read(2);
    expect(page).toMatchObject({ isAnew: true, floor: 3 });
    expect(page?.kind === "page" && page.records.map(({ id }) => id)).toEqual(["stays"]);
    expect(await read(3)).toMatchObject({ isAnew: false, records: [] });
    expect(await records.read("override", { state: "other", version: 0 })).toEqual({
      kind: "other",
      state,
    });
  });

  it("answers no more than a page, and the rest behind it", async () => {
    const { records, state } = await opened();
    for (let i = 0; i <= pageRecordsMax; i += 1) {
      const facts = { kind: "override", value: {}, expectedVersion: 0, audit: undefined } as const;
      await records.change({ ...facts, id: `r${i}`, name: "a", seen: { state, version: 0 } });
    }
    const first = await records.read("override", { state, version: 0 });
    expect(first).toMatchObject({ version: pageRecordsMax });
    const rest = await records.read("override", { state, version: pageRecordsMax });
    expect(rest).toMatchObject({ version: pageRecordsMax + 1, records: [{ id: "r1000" }] });
    const seen = { state, version: pageRecordsMax + 1 };
    expect(await records.read("override", seen)).toBeUndefined();
  });
});
