import { expect, it } from "vitest";
import type { SharedRecords } from "../../src/fleet/records/shared-records.js";
import {
  auditBytesMax,
  type RecordChange,
  type RecordKind,
  recordsMax,
} from "../../src/store/coordination/record-store.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import { withheldTime } from "../support/withheld-time.js";

/** Several replicas' views of the same records. */
export interface RecordWorld {
  open(): SharedRecords;
}

/** What records promise to replicas, in any store. */
export function describeRecords(world: () => RecordWorld): void {
  describeChanges(world);
  describeBounds(world);
  describeOthers(world);
}

function change(fields: Partial<RecordChange> = {}): RecordChange {
  return {
    kind: "override",
    id: "one",
    value: { text: "ä\n1 2" },
    expectedVersion: 0,
    audit: { who: "ann" },
    ...fields,
  };
}

function values(records: SharedRecords, kind: RecordKind = "override") {
  return Object.fromEntries([...records.list(kind)].map(([id, { value }]) => [id, value]));
}

/** Makes a change that must succeed; answers the version. */
async function changed(records: SharedRecords, fields: Partial<RecordChange> = {}) {
  const outcome = await records.change(change(fields));
  if (outcome.kind !== "changed") throw new Error(outcome.kind);
  return outcome.version;
}

function describeChanges(world: () => RecordWorld): void {
  it("keeps what is stored, with a version that grows", async () => {
    const records = world().open();
    const version = await changed(records);
    expect(await changed(records, { id: "two", value: {} })).toBe(version + 1);
    expect(values(records)).toEqual({ one: { text: "ä\n1 2" }, two: {} });
    expect(records.list("override").get("two")?.version).toBe(version + 1);
    expect(values(records, "gate")).toEqual({});
  });

  it("changes nothing for one who has seen another version", async () => {
    const records = world().open();
    const version = await changed(records);
    expect(await records.change(change())).toEqual({ kind: "conflict", version });
    expect(await records.change(change({ expectedVersion: version + 1 }))).toEqual({
      kind: "conflict",
      version,
    });
    expect(await records.change(change({ id: "none", expectedVersion: 3 }))).toEqual({
      kind: "conflict",
      version: 0,
    });
    const next = change({ value: { next: true }, expectedVersion: version });
    expect(await records.change(next)).toEqual({ kind: "changed", version: version + 1 });
    expect(values(records)).toEqual({ one: { next: true } });
    expect(await records.audit(Number.POSITIVE_INFINITY, 10)).toHaveLength(2);
  });

  it("takes away, and takes in again", async () => {
    const records = world().open();
    const version = await changed(records);
    const gone = { value: undefined, expectedVersion: version, audit: undefined };
    expect(await changed(records, gone)).toBe(version + 1);
    expect(values(records)).toEqual({});
    expect(await changed(records)).toBe(version + 2);
    expect(await records.audit(Number.POSITIVE_INFINITY, 10)).toHaveLength(2);
  });
}

function describeBounds(world: () => RecordWorld): void {
  it("tells of changes until it is asked not to", async () => {
    const records = world().open();
    const reported: RecordKind[] = [];
    const stop = records.onChange((kind) => reported.push(kind));
    await records.change(change());
    await records.change(change({ kind: "gate", id: "orders" }));
    stop();
    await records.change(change({ id: "two" }));
    expect(reported).toEqual(["override", "gate"]);
  });

  it("has room for so many of a kind, and no more", async () => {
    const records = world().open();
    for (let i = 0; i < recordsMax.policy; i += 1) {
      await records.change(change({ kind: "policy", id: `p${i}` }));
    }
    expect(await records.change(change({ kind: "policy", id: "more" }))).toEqual({ kind: "full" });
    expect(records.list("policy").size).toBe(recordsMax.policy);
  });

  it("reads the log from the newest, or from an entry on", async () => {
    const records = world().open();
    for (let i = 1; i <= 5; i += 1) {
      await records.change(change({ id: `r${i}`, audit: { text: `ä\n${i}` } }));
    }
    const newest = await records.audit(Number.POSITIVE_INFINITY, 2);
    expect(newest.map(({ number, value }) => [number, value["text"]])).toEqual([
      [5, "ä\n5"],
      [4, "ä\n4"],
    ]);
    const older = await records.audit(4, 10);
    expect(older.map(({ number }) => number)).toEqual([3, 2, 1]);
    expect(await records.audit(1, 10)).toEqual([]);
    expect(Math.abs((newest[0]?.epochMs ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  it("writes down what was done to no record", async () => {
    const records = world().open();
    await records.note({ who: "ann", reset: "ä\n1 2" });
    await records.note({ who: "ben" });
    const log = await records.audit(Number.POSITIVE_INFINITY, 10);
    expect(log.map(({ number, value }) => [number, value])).toEqual([
      [2, { who: "ben" }],
      [1, { who: "ann", reset: "ä\n1 2" }],
    ]);
    await expect(records.note({ text: "x".repeat(auditBytesMax) })).rejects.toThrow("fits");
  });

  it("refuses what is out of its bounds as a bug", async () => {
    const records = world().open();
    await expect(records.change(change({ id: "no name" }))).rejects.toThrow();
    const value = { text: "x".repeat(20_000) };
    await expect(records.change(change({ value }))).rejects.toThrow();
    expect(values(records)).toEqual({});
  });
}

function describeOthers(createWorld: () => RecordWorld): void {
  const stage = useStage("test");

  it("shows every replica what one has changed, within a second", async () => {
    const { open } = createWorld();
    const [one, other] = [open(), open()];
    const expectedVersion = await changed(one);
    const withinSecond = { withinMs: 1_000, withheldMs: withheldTime(stage) };
    await waitFor("the other knows", () => other.list("override").has("one"), withinSecond);
    await changed(other, { value: undefined, expectedVersion });
    await waitFor("the first knows", () => !one.list("override").has("one"), withinSecond);
  });

  it("lets one of two changes from the same version win", async () => {
    const { open } = createWorld();
    const [one, other] = [open(), open()];
    const outcomes = await Promise.all([
      one.change(change({ value: { by: "one" } })),
      other.change(change({ value: { by: "other" } })),
    ]);
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["changed", "conflict"]);
    expect(await one.audit(Number.POSITIVE_INFINITY, 10)).toHaveLength(1);
  });
}
