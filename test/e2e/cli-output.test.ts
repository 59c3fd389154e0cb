import { spawn } from "node:child_process";
import { describe, expect, it } from "vitest";

/** Runs the command line, and stops reading after what comes first. */
function runCut(...words: readonly string[]): Promise<{ code: number | null; err: string }> {
  const args = ["dist/cli/main.js", ...words];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let err = "";
  child.stderr.on("data", (text: Buffer) => {
    err += text.toString("utf8");
  });
  // A reader that is gone before anything is written is the hardest case.
  child.stdout.destroy();
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, err })));
}

describe("processOutput", () => {
  it.each([[["help", "fmt"]], [["schema"]]])(
    "ends %o quietly when its reader has left",
    async (words) => {
      expect(await runCut(...words)).toEqual({ code: 0, err: "" });
    },
  );
});
