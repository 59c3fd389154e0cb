import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const module = new URL("../../../../src/app/base/collector.ts", import.meta.url).href;

/** Makes objects that live on for a while, and tells how much of the next ones is young. */
const program = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { tsImport } from "tsx/esm/api";
    const { keepNewObjectsYoung } = await tsImport(${JSON.stringify(module)}, import.meta.url);
    keepNewObjectsYoung();
    const youngBytes = () =>
      getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_used_size;
    const make = (i) => ({ i, of: { i, of: { i } } });
    const kept = new Array(200_000);
    const round = () => {
      for (let i = 0; i < 1_000_000; i += 1) kept[i % kept.length] = make(i);
    };
    for (let i = 0; i < 6; i += 1) round();
    // The most of five, since a collection may fall into one of them.
    let most = 0;
    for (let turn = 0; turn < 5; turn += 1) {
      const before = youngBytes();
      for (let i = 0; i < 2_000; i += 1) kept[i] = make(i);
      most = Math.max(most, youngBytes() - before);
    }
    console.log(most);
  `;

async function youngBytes(): Promise<number> {
  const nodeArguments = ["--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, nodeArguments);
  return Number(stdout);
}

describe("keepNewObjectsYoung()", () => {
  it("has objects begin young whose like have lived on", async () => {
    // Three of them take 96 bytes at least; without the call it is 1,920, where V8 is in time.
    expect(await youngBytes()).toBeGreaterThan(2_000 * 96);
  }, 60_000);
});
