import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/core/base/errors.js";
import {
  type LagQuestion,
  LagReadings,
  nextOffset,
  topicKey,
} from "../../../../src/fleet/signals/kafka-lag.js";

const question: LagQuestion = {
  topics: ["batches-*", "users"],
  unit: "messages",
  offsetReset: "earliest",
  by: undefined,
  keysMax: 2,
};

describe("nextOffset()", () => {
  it.each([
    { committed: 5, earliest: 2, latest: 9, reset: "earliest", next: 5, why: "the commit" },
    { committed: 1, earliest: 2, latest: 9, reset: "earliest", next: 2, why: "what is kept" },
    { committed: 99, earliest: 2, latest: 9, reset: "earliest", next: 9, why: "the end" },
    { committed: undefined, earliest: 2, latest: 9, reset: "earliest", next: 2, why: "the start" },
    { committed: undefined, earliest: 2, latest: 9, reset: "latest", next: 9, why: "the end" },
  ] as const)("is $why for $committed of $earliest to $latest", ({ reset, next, ...range }) => {
    const partition = { topic: "a", partition: 0, ...range };
    expect(nextOffset(partition, { offsetReset: reset })).toBe(next);
  });
});

describe("topicKey()", () => {
  it.each([
    ["batches-orders", "orders"],
    ["users", "users"],
    ["batches-", undefined],
    ["batches", undefined],
    ["x-batches-orders", undefined],
    ["users2", undefined],
  ])("of %s is %s", (topic, key) => {
    expect(topicKey(question.topics, topic)).toBe(key);
  });

  it("needs a start and an end that do not overlap", () => {
    expect(topicKey(["aba*aba"], "ababa")).toBeUndefined();
    expect(topicKey(["aba*aba"], "aba-aba")).toBe("-");
    expect(topicKey(["*"], "any")).toBe("any");
  });
});

describe("LagReadings", () => {
  it("adds up messages, and takes the longest of seconds", () => {
    const [messages, seconds] = [
      new LagReadings(question),
      new LagReadings({ ...question, unit: "seconds" }),
    ];
    for (const readings of [messages, seconds]) {
      for (const [partition, lag] of [3, 7, 5].entries()) readings.add("users", partition, lag);
    }
    expect(messages.finish()).toEqual({ kind: "whole", reading: 15 });
    expect(seconds.finish()).toEqual({ kind: "whole", reading: 7 });
  });

  it("has no reading of a key with an unknown partition, and at most so many keys", () => {
    const readings = new LagReadings({ ...question, by: "topic" });
    readings.add("batches-a", 0, 1);
    readings.fail("batches-a", 1, new ServiceError("SIGNAL_UNAVAILABLE"));
    for (const key of ["b", "c", "d"]) readings.add(`batches-${key}`, 0, 2);
    const byKey = new Map([
      ["b", 2],
      ["c", 2],
    ]);
    expect(readings.finish()).toEqual({ kind: "byKey", readings: byKey });
  });

  it("fails with the first failure where no key has a reading, and without partitions", () => {
    const readings = new LagReadings(question);
    readings.add("users", 0, 1);
    readings.fail("users", 1, new ServiceError("SIGNAL_REFUSED"));
    readings.fail("users", 2, new ServiceError("SIGNAL_TIMEOUT"));
    expect(() => readings.finish()).toThrow(/answered with an error/);
    expect(() => new LagReadings(question).finish()).toThrow(/has no such value/);
  });
});
