import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FileStep } from "../../../../src/cli/generate/generated-folder.js";
import { writeFolder } from "../../../../src/cli/generate/write-folder.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-write-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const list = { name: ".list", text: "list\n" };

function everything(): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
}

describe("writeFolder()", () => {
  it("adds, changes and removes, and writes the list last", async () => {
    writeFileSync(join(folder, "b"), "old");
    mkdirSync(join(folder, "c"));
    writeFileSync(join(folder, "c/d"), "gone");
    const steps: readonly FileStep[] = [
      { kind: "add", path: "a/a", text: "new" },
      { kind: "change", path: "b", text: "newer", oldText: "old" },
      { kind: "remove", path: "c/d", oldText: "gone" },
    ];
    await writeFolder(folder, { steps, list });
    expect(everything()).toEqual([".list", "a", "a/a", "b"]);
    expect(readFileSync(join(folder, "b"), "utf8")).toBe("newer");
  });

  it("puts all back where the last step cannot be taken", async () => {
    writeFileSync(join(folder, "b"), "old");
    writeFileSync(join(folder, "d"), "gone");
    // A folder in the place of the list: it is written last.
    mkdirSync(join(folder, ".list"));
    writeFileSync(join(folder, ".list/full"), "");
    const before = everything();
    const steps: readonly FileStep[] = [
      { kind: "add", path: "a/a/a", text: "new" },
      { kind: "change", path: "b", text: "newer", oldText: "old" },
      { kind: "remove", path: "d", oldText: "gone" },
    ];
    await expect(writeFolder(folder, { steps, list })).rejects.toThrow("EISDIR");
    expect(everything()).toEqual(before);
    expect(readFileSync(join(folder, "b"), "utf8")).toBe("old");
    expect(readFileSync(join(folder, "d"), "utf8")).toBe("gone");
  });

  it("leaves nothing behind where a text has no place to be prepared", async () => {
    writeFileSync(join(folder, "file"), "");
    const steps: readonly FileStep[] = [
      { kind: "add", path: "new/a", text: "a" },
      { kind: "add", path: "file/a", text: "a" },
    ];
    await expect(writeFolder(folder, { steps, list })).rejects.toThrow();
    expect(everything()).toEqual(["file"]);
    const within = join(folder, "file/deeper");
    await expect(writeFolder(within, { steps: [], list })).rejects.toThrow();
    expect(existsSync(within)).toBe(false);
  });

  it("ends where a folder cannot be made, and says why", async () => {
    // Without /proc it is a path below a file; with it, one where Node itself would never end.
    const place = existsSync("/proc/self") ? "/proc/headgate/c" : join(import.meta.filename, "c");
    const steps: readonly FileStep[] = [{ kind: "add", path: "a/b", text: "" }];
    const written = writeFolder(place, { steps, list });
    await expect(written).rejects.toMatchObject({ code: expect.stringMatching(/^ENO/) });
  });
});
