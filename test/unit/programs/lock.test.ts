import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withLock } from "../../../src/programs/lock.mjs";

let root: string;
let lock: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "headgate-lock-"));
  lock = join(root, "tools/work.lock");
});

afterEach(() => rmSync(root, { recursive: true }));

/** Leaves a lock as another process would. */
function leaveLock(owner: { readonly pid: number; readonly host: string }): void {
  mkdirSync(lock, { recursive: true });
  writeFileSync(join(lock, "owner"), JSON.stringify(owner));
}

describe("withLock()", () => {
  it("lets one work at a time", async () => {
    let workingCount = 0;
    let workingMax = 0;
    const work = async (): Promise<void> => {
      workingCount += 1;
      workingMax = Math.max(workingMax, workingCount);
      await new Promise((resolve) => setImmediate(resolve));
      workingCount -= 1;
    };
    await Promise.all([withLock(lock, work), withLock(lock, work), withLock(lock, work)]);
    expect(workingMax).toBe(1);
  });

  it("gives back what the work gives, and releases the lock", async () => {
    expect(await withLock(lock, async () => existsSync(lock))).toBe(true);
    expect(existsSync(lock)).toBe(false);
  });

  it("releases the lock when the work fails", async () => {
    const failing = withLock(lock, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(existsSync(lock)).toBe(false);
  });

  it("takes over from a process that is gone", async () => {
    const { pid } = spawnSync(process.execPath, ["--version"]);
    leaveLock({ pid, host: hostname() });
    expect(await withLock(lock, async () => "mine")).toBe("mine");
  });

  it("takes over from another machine's process that has long been silent", async () => {
    leaveLock({ pid: 1, host: "elsewhere" });
    utimesSync(lock, 0, 0);
    expect(await withLock(lock, async () => "mine")).toBe("mine");
  });
});
