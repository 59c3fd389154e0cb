import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { momentAfter, momentAt } from "../../../../src/cli/input/moment.js";

/** 2026-11-23T19:30:00Z, a Monday. */
const nowUs = 1_795_462_200 * 1_000_000;
const clock = { epochUs: () => nowUs } as Parameters<typeof momentAt>[0]["clock"];

describe("momentAt()", () => {
  it.each([
    ["2026-11-27T12:00:00Z", "2026-11-27T12:00:00.000Z"],
    ["2026-11-27", "2026-11-27T00:00:00.000Z"],
    ["friday", "2026-11-27T00:00:00.000Z"],
    ["Fri", "2026-11-27T00:00:00.000Z"],
    ["tuesday", "2026-11-24T00:00:00.000Z"],
    ["sunday", "2026-11-29T00:00:00.000Z"],
    // Today has begun.
    ["monday", "2026-11-30T00:00:00.000Z"],
  ])("reads %s as %s", (text, wanted) => {
    const moment = momentAt({ flag: "--until", text, clock });
    expect(timestampDate(moment).toISOString()).toBe(wanted);
  });

  it.each(["2026-02-30", "2026-11", "freitag", "fr", "3d", ""])("refuses %j", (text) => {
    expect(() => momentAt({ flag: "--until", text, clock })).toThrow(/--until must be a time/);
  });
});

describe("momentAfter()", () => {
  it("counts from now", () => {
    const moment = momentAfter({ flag: "--for", text: "3d", clock });
    expect(timestampDate(moment).toISOString()).toBe("2026-11-26T19:30:00.000Z");
  });
});
