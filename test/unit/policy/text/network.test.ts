import { isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatIpAddress,
  networkContains,
  parseIpAddress,
  parseNetwork,
  parseSourceAddress,
} from "../../../../src/policy/text/network.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("parseIpAddress()", () => {
  it.each([
    ["10.0.0.1", [10, 0, 0, 1]],
    ["255.255.255.255", [255, 255, 255, 255]],
    ["::", Array.from({ length: 16 }, () => 0)],
    ["::1", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]],
    ["2001:db8::a:1", [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 1]],
    ["1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["1:2:3:4:5:6:7::", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ["::ffff:10.0.0.1", [10, 0, 0, 1]],
    ["::FFFF:0a00:0001", [10, 0, 0, 1]],
    ["64:ff9b::10.0.0.1", [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]],
  ])("reads %s", (text, bytes) => {
    expect(parseIpAddress(text)).toEqual(bytes);
  });

  it.each([
    ["", "10.0.0", "10.0.0.0.0", "10.0.0.256", "010.0.0.1", "10.0.0.1 ", "0x0a.0.0.1", "a"],
    [":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::"],
    ["fe80::1%eth0", "10.0.0.1::", "::10.0.0.1:1", "::10.0.0.256", "1:", ":1", "1".repeat(65)],
  ])("refuses what is none: %s, %s, %s and others", (...texts) => {
    for (const text of texts) expect(parseIpAddress(text), text).toBeUndefined();
  });

  it("takes what the platform takes, and nothing else", () => {
    const piece = fc.constantFrom(":", "::", ".", "0", "1", "00", "ff", "10", "255", "256", "ffff");
    const texts = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.array(piece, { maxLength: 18 }).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(parseIpAddress(text) !== undefined, text).toBe(isIP(text) !== 0);
      }),
      propertyRuns(100),
    );
  });
});

describe("parseSourceAddress()", () => {
  it.each([
    ["10.0.0.1:1234", [10, 0, 0, 1]],
    ["10.0.0.1", [10, 0, 0, 1]],
    ["[::ffff:10.0.0.1]:1", [10, 0, 0, 1]],
    ["[::1]:65535", parseIpAddress("::1")],
    ["[::1]", parseIpAddress("::1")],
    ["::1", parseIpAddress("::1")],
    // Not 1:2 at port 3.
    ["1::2:3", parseIpAddress("1::2:3")],
  ])("reads %s", (text, bytes) => {
    expect(parseSourceAddress(text)).toEqual(bytes);
  });

  it.each([
    "",
    "/var/run/envoy.sock",
    "@abstract",
    "host:80",
    "10.0.0.1:",
    "10.0.0.1:123456",
    "[10.0.0.1]:80",
    "[::1",
    "[::1]x",
  ])("refuses %s", (text) => {
    expect(parseSourceAddress(text)).toBeUndefined();
  });
});

describe("parseNetwork()", () => {
  it.each([
    ["10.0.0.0/8", [10, 0, 0, 0], 8],
    ["10.1.2.3", [10, 1, 2, 3], 32],
    ["0.0.0.0/0", [0, 0, 0, 0], 0],
    ["::ffff:10.0.0.0/104", [10, 0, 0, 0], 8],
    ["fd00::/8", parseIpAddress("fd00::"), 8],
    ["::1/128", parseIpAddress("::1"), 128],
  ])("reads %s", (text, address, prefixBits) => {
    expect(parseNetwork(text)).toEqual({ address, prefixBits });
  });

  it.each([
    "10.0.0.1/8",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "fd00::1/8",
    "::/129",
    "::ffff:10.0.0.0/8",
    "shop",
  ])("refuses %s", (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });
});

describe("formatIpAddress()", () => {
  it.each([
    ["10.0.0.255", "10.0.0.255"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["fd00::1", "fd00:0:0:0:0:0:0:1"],
    ["2001:db8:0:ff::", "2001:db8:0:ff:0:0:0:0"],
  ])("writes %s as %s", (text, written) => {
    const address = parseIpAddress(text);
    if (address === undefined) throw new Error("the case is wrong");
    expect(formatIpAddress(address)).toBe(written);
    expect(parseIpAddress(written)).toEqual(address);
  });
});

describe("networkContains()", () => {
  it.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["172.16.0.0/12", "172.31.0.1", true],
    ["172.16.0.0/12", "172.32.0.1", false],
    ["0.0.0.0/0", "1.2.3.4", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "1.2.3.4", false],
    ["fd00::/8", "fdff::1", true],
    ["fd00::/8", "fe00::1", false],
    ["::1", "::1", true],
    ["::1", "::2", false],
  ])("says of %s and %s: %s", (network, address, isInside) => {
    const parsed = parseNetwork(network);
    const candidate = parseSourceAddress(address);
    if (parsed === undefined || candidate === undefined) throw new Error("the case is wrong");
    expect(networkContains(parsed, candidate)).toBe(isInside);
  });
});
