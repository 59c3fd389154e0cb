import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";

const run = promisify(execFile);
const buf = "node_modules/.bin/buf";

/** What buf says of our own API; nothing where all is well. */
async function findings(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(buf, [...args]).catch((error: { readonly stdout: string }) => error);
  return stdout;
}

describe("proto/headgate", () => {
  it("is as buf wants it", async () => {
    expect(await findings("lint", "proto")).toBe("");
    expect(await findings("format", "--diff", "proto")).toBe("");
  });

  it("breaks nothing that an older client was built with", async () => {
    const released = "proto/headgate/admin-v1.binpb";
    expect(await findings("breaking", "proto", "--against", released)).toBe("");
    const folder = await mkdtemp(join(tmpdir(), "headgate-proto-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await cp("proto/buf.yaml", join(folder, "buf.yaml"));
    await cp("proto/headgate/admin", join(folder, "headgate/admin"), { recursive: true });
    const file = join(folder, "headgate/admin/v1/admin.proto");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace("string limit_name = 3;", "bytes limit_name = 3;"));
    expect(await findings("breaking", folder, "--against", released)).toContain("limit_name");
  });
});
