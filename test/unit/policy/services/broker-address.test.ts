import { describe, expect, it } from "vitest";
import { parseBroker } from "../../../../src/policy/services/broker-address.js";

describe("parseBroker()", () => {
  it.each([
    ["kafka.example:9092", { host: "kafka.example", port: 9_092 }],
    ["10.0.0.1:1", { host: "10.0.0.1", port: 1 }],
    ["[fd00::1]:65535", { host: "fd00::1", port: 65_535 }],
    ["kafka.example", undefined],
    ["kafka.example:0", undefined],
    ["kafka.example:65536", undefined],
    ["fd00::1:9092", undefined],
    ["-a:1", undefined],
    ["a.:1", undefined],
    ["", undefined],
  ])("reads %s", (text, found) => {
    expect(parseBroker(text)).toEqual(found);
  });
});
