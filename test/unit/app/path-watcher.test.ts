import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PathWatcher, pollMs } from "../../../src/app/path-watcher.js";
import { FakeClock } from "../../support/fake-clock.js";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-watch-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe("PathWatcher", () => {
  it("looks from time to time without any sign, and no more once closed", () => {
    const clock = new FakeClock();
    let lookCount = 0;
    const onChange = (): void => {
      lookCount += 1;
    };
    const path = join(folder, "not-there-yet.yaml");
    const watcher = new PathWatcher({ path, directories: [], clock, onChange });
    clock.advance(3 * pollMs);
    expect(lookCount).toBe(3);
    watcher.close();
    clock.advance(3 * pollMs);
    expect(lookCount).toBe(3);
    expect(clock.timerCount).toBe(0);
  });
});
