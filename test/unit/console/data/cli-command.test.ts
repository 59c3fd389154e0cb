import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { keyCommand, reasonFlags, writeCommand } from "../../../../src/console/data/cli-command.js";

describe("a command to copy", () => {
  it("is read by a shell as the words that were meant", () => {
    const words = ["printf", "%s\\n", "it's", "a b", "$HOME", "`id`", '"x"', "a;b", "", "*"];
    const out = execFileSync("sh", ["-c", writeCommand(words)], { encoding: "utf8" });
    expect(out.split("\n").slice(0, -1)).toEqual(words.slice(2));
  });

  it("names a key, its limit and a reason", () => {
    const entries = [
      { key: "plan", value: "free" },
      { key: "user", value: "ann" },
    ];
    const target = { domain: "shop", entries, limitName: "pace", isPrefix: true };
    const flags = ["--times", "2x", ...reasonFlags("")];
    expect(keyCommand(["keys", "override"], target, flags).split(" --")).toEqual([
      "headgate keys override shop plan=free,user=ann",
      "limit pace",
      "prefix",
      "times 2x",
      "reason ...",
    ]);
  });
});
