import { describe, expect, it } from "vitest";
import { redisUserCommand } from "../../../../src/generate/kubernetes/kubernetes.js";

/** The patterns of keys in the command. */
function patterns(...keys: readonly string[]): readonly string[] {
  return redisUserCommand("gate", keys)
    .split(" ")
    .filter((word) => word.startsWith("~"));
}

describe("redisUserCommand()", () => {
  it("begins with no rights at all, and lets nobody choose the text of a script", () => {
    const words = redisUserCommand("gate", []).split(" ");
    expect(words.slice(0, 7)).toEqual([
      ...["ACL", "SETUSER", "gate", "on", "#SHA256_OF_ITS_PASSWORD", "~headgate:*", "-@all"],
    ]);
    expect(words).not.toContain("+eval");
    expect(words.filter((word) => word.includes("@"))).toEqual(["-@all"]);
  });

  it("adds a key of others', and what reading it needs", () => {
    expect(patterns("lag:orders")).toEqual(["~headgate:*", "~lag:orders"]);
    expect(redisUserCommand("gate", ["lag"])).toMatch(/ \+type \+get \+strlen \+llen$/);
  });

  it.each([
    ["a*b", "~a\\*b"],
    ["a?b", "~a\\?b"],
    ["a[b]^", "~a\\[b\\]\\^"],
    ["a\\b", "~a\\\\b"],
    // What a pattern cannot hold may be any one character.
    ["a b", "~a?b"],
    [`a"b'c`, "~a?b?c"],
  ])("means %j alone by %j", (key, pattern) => {
    expect(patterns(key)).toEqual(["~headgate:*", pattern]);
  });
});
