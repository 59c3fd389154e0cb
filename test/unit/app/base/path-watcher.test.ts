import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  PathWatcher,
  pollMs,
  settleMs,
  settleMsMax,
} from "../../../../src/app/base/path-watcher.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { waitFor } from "../../../support/wait.js";

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

  /** A clock that counts what is scheduled: each change that is noticed schedules a look anew. */
  class CountingClock extends FakeClock {
    scheduledCount = 0;

    override schedule(delayMs: number, callback: () => void): () => void {
      this.scheduledCount += 1;
      return super.schedule(delayMs, callback);
    }
  }

  it("looks when a change has been followed by quiet", async () => {
    const clock = new CountingClock();
    let lookCount = 0;
    const onChange = (): void => {
      lookCount += 1;
    };
    const path = join(folder, "policy.yaml");
    const watcher = new PathWatcher({ path, directories: [], clock, onChange });
    const beforeCount = clock.scheduledCount;
    await writeFile(path, "a");
    await waitFor("it is noticed", () => clock.scheduledCount > beforeCount);
    clock.advance(settleMs - 1);
    expect(lookCount).toBe(0);
    // A write is several changes, and some of them may be noticed late.
    await waitFor("a look", () => {
      clock.advance(settleMs);
      return lookCount > 0;
    });
    watcher.close();
    expect(clock.timerCount).toBe(0);
  });

  it("puts a look off so long where changes never stop", async () => {
    const clock = new CountingClock();
    let lookedMs: number | undefined;
    const onChange = (): void => {
      lookedMs ??= clock.monotonicMs();
    };
    const path = join(folder, "policy.yaml");
    const watcher = new PathWatcher({ path, directories: [], clock, onChange });
    const startMs = clock.monotonicMs();
    for (let count = 0; lookedMs === undefined; count += 1) {
      const beforeCount = clock.scheduledCount;
      await writeFile(path, `${count}`);
      await waitFor("it is noticed", () => clock.scheduledCount > beforeCount);
      clock.advance(settleMs - 50);
    }
    expect(lookedMs - startMs).toBe(settleMsMax);
    watcher.close();
  });
});
