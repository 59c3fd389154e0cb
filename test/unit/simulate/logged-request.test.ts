import { describe, expect, it } from "vitest";
import { callerAddress, isLimited } from "../../../src/simulate/logged-request.js";

describe("callerAddress()", () => {
  it.each([
    ["10.0.0.1:5000", "", "10.0.0.1"],
    ["10.0.0.1", "1.1.1.1", "10.0.0.1"],
    ["[2001:db8::1]:5000", "", "[2001:db8::1]"],
    ["-", "1.1.1.1, 10.0.0.9", "10.0.0.9"],
    ["", "1.1.1.1, 10.0.0.9:80", "10.0.0.9"],
    ["", "2001:db8::1", "[2001:db8::1]"],
    ["", "1.1.1.1, 2001:db8::2", "[2001:db8::2]"],
    ["", "::ffff:10.0.0.1", "[::ffff:10.0.0.1]"],
    ["", "-", ""],
    ["", "", ""],
    ["[no end", "", "[no end"],
    ["[no:end", "", "[no:end"],
    ["no:such:thing", "", "no:such:thing"],
  ])("finds in %j and %j: %j", (remote, forwarded, expected) => {
    expect(callerAddress(remote, forwarded)).toBe(expected);
  });
});

describe("isLimited()", () => {
  it.each([
    ["RL", true],
    ["UF,RL", true],
    ["RLSE", false],
    ["-", false],
    ["", false],
  ])("of %j: %j", (flags, expected) => {
    expect(isLimited(flags)).toBe(expected);
  });
});
