import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodePublishedRoom,
  encodePublishedRoom,
  type PublishedRoom,
} from "../../../../src/core/waiting-room/published-room.js";
import {
  frontBytesMax,
  lineSpanMax,
  liveBlockSize,
} from "../../../../src/core/waiting-room/room-line.js";
import { statusBytesMax } from "../../../../src/store/coordination/room-store.js";
import { propertyRuns } from "../../../support/seeds.js";

const published: PublishedRoom = {
  status: {
    lineId: 2 ** 32 - 1,
    second: 1_234_567.891,
    nextNumber: 2 ** 48,
    calledPlace: 2 ** 47,
    waitingCount: 3,
    liveByBlock: [1, 2],
    liveAtFront: Uint8Array.from({ length: 256 }, (_, i) => i),
    activeCount: 5,
    activeCountMax: 6,
    entriesPerSecond: 0.123_456_789,
    entriesMeasuredCount: 17.5,
    abandonPerSecond: 0.01,
    sessionSeconds: 321.5,
    rangeFactor: 1.25,
    rejectRatio: 0.5,
    shuffles: [{ from: 7, count: 9, seed: 2 ** 32 - 1 }],
    phase: "preQueue",
    opensSecond: 99,
    shufflesNext: true,
    mode: "draining",
  },
  memory: {
    sessionsEnd: 4,
    tokens: -2.5,
    openedEvent: "sale@1",
    heldSeconds: 1,
    endedCount: 2,
    waitedSeconds: 3,
    leftCount: 4,
    learnedEndedCount: 5,
    learnedHeldCount: 6,
    autoActiveMax: 7.5,
    inFlightSum: 8,
    activeSum: 9,
  },
};

const text = encodePublishedRoom(published);

describe("encodePublishedRoom() and decodePublishedRoom()", () => {
  it("bring back what was published, with and without what may be unknown", () => {
    expect(decodePublishedRoom(text)).toEqual(published);
    const unknown = {
      entriesPerSecond: undefined,
      sessionSeconds: undefined,
      opensSecond: undefined,
    };
    const less = {
      status: { ...published.status, ...unknown },
      memory: { ...published.memory, openedEvent: undefined, autoActiveMax: undefined },
    };
    expect(decodePublishedRoom(encodePublishedRoom(less))).toEqual(less);
  });

  it("fit into what a leader may publish, for the longest line", () => {
    const blocks = lineSpanMax / liveBlockSize + 1;
    const liveByBlock = Array.from({ length: blocks }, () => liveBlockSize);
    const liveAtFront = new Uint8Array(frontBytesMax).fill(255);
    const longest = { ...published, status: { ...published.status, liveByBlock, liveAtFront } };
    expect(encodePublishedRoom(longest).length).toBeLessThan(statusBytesMax);
    expect(decodePublishedRoom(encodePublishedRoom(longest))).toEqual(longest);
  });

  it.each([
    { name: "another format", change: ['"format":1', '"format":2'] },
    { name: "a number below 0", change: ['"waitingCount":3', '"waitingCount":-3'] },
    { name: "a fraction of a place", change: ['"activeCount":5', '"activeCount":5.5'] },
    { name: "a number too large", change: ['"activeCount":5', '"activeCount":1e300'] },
    { name: "no number", change: ['"waitingCount":3', '"waitingCount":"3"'] },
    { name: "an unknown mode", change: ['"mode":"draining"', '"mode":"closed"'] },
    { name: "too large a shuffle", change: ['"count":9', '"count":99999999'] },
    { name: "a count that is none", change: ['"liveByBlock":[1,2]', '"liveByBlock":[1,{}]'] },
    { name: "no list", change: ['"liveByBlock":[1,2]', '"liveByBlock":{"length":2}'] },
    { name: "bytes that are none", change: ['"liveAtFront":"', '"liveAtFront":"*'] },
    { name: "a missing part", change: ['"memory"', '"memories"'] },
  ])("refuse $name", ({ change: [from = "", to = ""] }) => {
    expect(text).toContain(from);
    expect(decodePublishedRoom(text.replace(from, to))).toBeUndefined();
  });

  it("read or refuse any other text, without throwing", () => {
    const position = fc.nat(text.length);
    const changes = fc.array(fc.tuple(position, fc.string({ maxLength: 3 })), { maxLength: 3 });
    const other = changes.map((list) => {
      return list.reduce((left, [at, put]) => left.slice(0, at) + put + left.slice(at + 1), text);
    });
    const decodes = (any: string): void => {
      const decoded = decodePublishedRoom(any);
      if (decoded !== undefined)
        expect(Number.isSafeInteger(decoded.status.calledPlace)).toBe(true);
    };
    fc.assert(fc.property(fc.oneof(other, fc.string(), fc.json()), decodes), propertyRuns(1_000));
  });
});
