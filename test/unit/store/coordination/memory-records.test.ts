import { describe, expect, it } from "vitest";
import { MemoryRecords } from "../../../../src/store/coordination/memory-records.js";
import {
  auditEntriesMax,
  goneRecordsMax,
  pageRecordsMax,
  recordsMax,
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

  it("answers what follows in the audit log, and no more than was asked for", async () => {
    const { records, state } = await opened();
    for (let i = 1; i <= 5; i += 1) await records.note({ action: "ResetKey" });
    const numbers = async (since: number, countMax: number, others = {}) => {
      const following = { state, since, countMax, bytesMax: 1_000, ...others };
      const entries = await records.followAudit(following);
      return entries.map(({ number }) => number);
    };
    expect(await numbers(2, 10)).toEqual([5, 4, 3]);
    expect(await numbers(2, 2)).toEqual([5, 4]);
    expect(await numbers(0, 10, { bytesMax: 1 })).toEqual([5]);
    expect(await numbers(5, 10)).toEqual([]);
    expect(await numbers(6, 10)).toEqual([]);
    expect(await numbers(0, 10, { state: "other" })).toEqual([]);
  });

  it("is full for another record, and not for an edit of one", async () => {
    const { records, state } = await opened();
    const put = (id: string, expectedVersion: number) => {
      const facts = { kind: "gate", name: id, audit: undefined, value: {} } as const;
      return records.change({ ...facts, id, expectedVersion, seen: { state, version: 0 } });
    };
    for (let i = 0; i < recordsMax.gate; i += 1) await put(`r${i}`, 0);
    expect(await put("one-more", 0)).toEqual({ kind: "full" });
    expect(await put("r0", 1)).toMatchObject({ kind: "changed" });
    expect(await put("r0", 1)).toEqual({ kind: "conflict", version: recordsMax.gate + 1 });
  });
});
