import { describe, expect, it } from "vitest";
import {
  goneRecordsMax,
  pageRecordsMax,
  recordBytesMax,
  recordKinds,
} from "../../../../../src/store/coordination/record-store.js";
import { readAudit, readPage } from "../../../../../src/store/redis/coordination/record-pages.js";

function pageOf(recordBytes: number): Buffer {
  const text = `{"a":"${"x".repeat(recordBytes - 8)}"}`;
  return Buffer.from(`7 0 0\na 6 ${text.length}\n${text}`);
}

describe("readPage()", () => {
  it.each(recordKinds)("reads a record of %s up to the longest that replicas write", (kind) => {
    const largest = readPage(kind, pageOf(recordBytesMax[kind]));
    expect(largest).toMatchObject({ kind: "page" });
    expect(() => readPage(kind, pageOf(recordBytesMax[kind] + 1))).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });

  it("reads the state of a store that is another one", () => {
    for (const state of ["", "0af9", "~0af9"]) {
      const page = readPage("override", Buffer.from(`other ${state}\n`));
      expect(page).toEqual({ kind: "other", state });
    }
  });

  it("reads records, what is gone, and whether all begins anew", () => {
    const page = readPage("override", Buffer.from('9 1 4\na 6 7\n{"n":1}b 8 -\n'));
    expect(page).toMatchObject({ kind: "page", version: 9, isAnew: true, floor: 4 });
    expect(page).toMatchObject({ records: [{ id: "a", version: 6 }], gone: [["b", 8]] });
    expect(readPage("override", Buffer.from("9 0 4\n"))).toMatchObject({ isAnew: false });
  });

  it.each([
    "other xyz\n",
    "9 2 4\n",
    "9 0 4",
    "9 0 4\na 6\n",
    "9 0 4\nA 6 -\n",
    "9 0 4\na 6 8\n{}",
    `9 0 4\n${" ".repeat(300)}\n`,
  ])("takes %j for no answer", (text) => {
    expect(() => readPage("override", Buffer.from(text))).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });

  it("reads no more records, and no more that are gone, than there may be", () => {
    const records = (count: number) => () =>
      readPage("override", Buffer.from(`9 0 0\n${"a 6 2\n{}".repeat(count)}`));
    const gone = (count: number) => () =>
      readPage("override", Buffer.from(`9 0 0\n${"a 6 -\n".repeat(count)}`));
    const protocol = expect.objectContaining({ code: "STORE_PROTOCOL" });
    expect(records(pageRecordsMax)()).toMatchObject({ kind: "page" });
    expect(records(pageRecordsMax + 1)).toThrow(protocol);
    expect(gone(goneRecordsMax)()).toMatchObject({ kind: "page" });
    expect(gone(goneRecordsMax + 1)).toThrow(protocol);
  });
});

describe("readAudit()", () => {
  it("reads entries with their numbers and times", () => {
    expect(readAudit(Buffer.from("7 50 2\n{}8 60 3\n\n{}"))).toEqual([
      { number: 7, epochMs: 50, text: "{}" },
      { number: 8, epochMs: 60, text: "\n{}" },
    ]);
    expect(() => readAudit(Buffer.from("7 50\n{}"))).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });
});
