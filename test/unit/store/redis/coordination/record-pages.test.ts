import { describe, expect, it } from "vitest";
import { recordBytesMax, recordKinds } from "../../../../../src/store/coordination/record-store.js";
import { readPage } from "../../../../../src/store/redis/coordination/record-pages.js";

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
});
