import { describe, expect, it } from "vitest";
import { peerAddress } from "../../../../src/app/base/address-bound.js";

describe("peerAddress()", () => {
  it.each([
    ["10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2:0:0:0:0/64"],
    ["2001:db8:1:2::ffff", "2001:db8:1:2:0:0:0:0/64"],
    ["2001:db8:1:3::ffff", "2001:db8:1:3:0:0:0:0/64"],
    ["fe80::1%eth0", "fe80:0:0:0:0:0:0:0/64"],
    ["::1", "0:0:0:0:0:0:0:0/64"],
    [undefined, ""],
  ])("of %s is %s", (remoteAddress, expected) => {
    expect(peerAddress({ remoteAddress })).toBe(expected);
  });
});
