import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { bundledProgram } from "../../../support/bundled-program.js";

const program = new URL("../../../support/young-objects-program.ts", import.meta.url);

async function youngBytes(): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [bundledProgram(program)]);
  return Number(stdout);
}

describe("keepNewObjectsYoung()", () => {
  it("has objects begin young whose like have lived on", async () => {
    // Three of them take 96 bytes at least; without the call it is 1,920, where V8 is in time.
    expect(await youngBytes()).toBeGreaterThan(2_000 * 96);
  }, 60_000);
});
