import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseReader } from "../../../../src/core/usage/sse-reader.js";
import { propertyRuns } from "../../../support/seeds.js";

/** The data of the events in bytes that end at these places; the last may be cut off. */
function read(bytes: Buffer, ends: readonly number[] = []): readonly string[] {
  const all: Buffer[] = [];
  const complete: string[] = [];
  const take = () => Buffer.concat(all.splice(0)).toString("latin1");
  const reader = new SseReader({
    data: (data, from, to) => all.push(Buffer.from(data.subarray(from, to))),
    eventEnd: () => complete.push(take()),
  });
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    reader.push(bytes.subarray(from, end));
    from = end;
  }
  return all.length === 0 ? complete : [...complete, take()];
}

/** The same as the standard says it, over all lines at once. */
function readByStandard(bytes: Buffer): readonly string[] {
  const text = bytes.toString("latin1").replace(/^\xef\xbb\xbf/, "");
  const complete: string[] = [];
  let data: string[] | undefined;
  for (const line of text.split(/\r\n|\r|\n/).slice(0, -1)) {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "data") data = [...(data ?? []), value];
    if (line !== "") continue;
    if (data !== undefined) complete.push(data.join("\n"));
    data = undefined;
  }
  return complete;
}

const part = fc.constantFrom(
  ...["data", "data:", "data: ", "data:  x", "dat", "datax: y", "event: data: z", ":data: c"],
  ...["\n", "\r", "\r\n", "\n\n", "\r\r", "{}", " ", ":", "\ufeff", "\0", "id: 1\n", "[DONE]"],
);

describe("SseReader", () => {
  it("reads events as the standard says, in whatever pieces they come", () => {
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 20 }),
        fc.constantFrom("\n\n", ""),
        fc.array(fc.nat(), { maxLength: 5 }),
        (parts, end, places) => {
          const bytes = Buffer.from(`${parts.join("")}${end}`);
          const ends = places.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b);
          const whole = read(bytes);
          if (end !== "") expect(whole).toEqual(readByStandard(bytes));
          expect(read(bytes, ends)).toEqual(whole);
          expect(
            read(
              bytes,
              Array.from(bytes, (_, i) => i),
            ),
          ).toEqual(whole);
        },
      ),
      propertyRuns(2_000),
    );
  });

  it.each([
    ["data: a\n\n", ["a"]],
    ["data:a\ndata: b\n\n", ["a\nb"]],
    ["\ufeffdata: a\r\n\r\ndata:b\r\rdata: c\n\n", ["a", "b", "c"]],
    [": comment\nevent: x\ndata: a\nid: 3\nretry: 5\n\n", ["a"]],
    ["data\n\n", [""]],
    ["data\ndata\n\n", ["\n"]],
    ["data:\n\n", [""]],
    ["data:  a\n\n", [" a"]],
    [" data: a\n\n", []],
    ["DATA: a\n\n", []],
    ["database: a\n\n", []],
    ["event: x\n\n", []],
    ["data: a\n", ["a"]],
    ["\ufeff\ufeffdata: a\n\n", []],
  ])("finds in %j %j", (text, found) => {
    expect(read(Buffer.from(text))).toEqual(found);
  });

  it("takes part of a byte order mark for a name", () => {
    const bytes = Buffer.concat([Buffer.of(0xef, 0xbb), Buffer.from("data: a\n\ndata: b\n\n")]);
    expect(read(bytes)).toEqual(["b"]);
    expect(read(bytes, [1, 2])).toEqual(["b"]);
  });
});
