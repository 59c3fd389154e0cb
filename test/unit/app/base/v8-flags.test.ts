import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const program = fileURLToPath(
  new URL("../../../support/young-objects-program.ts", import.meta.url),
);

async function youngBytes(...args: readonly string[]): Promise<number> {
  const node = ["--import", "tsx", program, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, node);
  return Number(stdout);
}

describe.concurrent("keepNewObjectsYoung()", () => {
  it("has objects begin young whose like have lived on", async () => {
    // Three of them take 96 bytes at least; without the call it is 1,920, where V8 is in time.
    expect(await youngBytes()).toBeGreaterThan(2_000 * 96);
  });

  it("is called for the whole process by the thread that parses its policies", async () => {
    expect(await youngBytes("policy")).toBeGreaterThan(2_000 * 96);
  });
});
