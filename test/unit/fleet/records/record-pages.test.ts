import { describe, expect, it } from "vitest";
import { nothingKnown } from "../../../../src/fleet/records/known-records.js";
import { readPage } from "../../../../src/fleet/records/record-pages.js";
import { recordBytesMax, recordKinds } from "../../../../src/fleet/records/shared-records.js";

function pageOf(recordBytes: number): Buffer {
  const text = `{"a":"${"x".repeat(recordBytes - 8)}"}`;
  return Buffer.from(`7 0 0\na 6 ${text.length}\n${text}`);
}

describe("readPage()", () => {
  it.each(recordKinds)("reads a record of %s up to the longest that replicas write", (kind) => {
    const largest = readPage(kind, nothingKnown, pageOf(recordBytesMax[kind]));
    expect(largest).toMatchObject({ kind: "page" });
    expect(() => readPage(kind, nothingKnown, pageOf(recordBytesMax[kind] + 1))).toThrow(
      expect.objectContaining({ code: "STORE_PROTOCOL" }),
    );
  });
});
