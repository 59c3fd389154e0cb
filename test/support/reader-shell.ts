import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

/** Where a command runs. */
interface ShellPlace {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command as a person's shell would; a refused policy has an exit code of its own. */
export async function runShell(command: string, { cwd, env = {} }: ShellPlace): Promise<string> {
  const all = { ...process.env, ...env };
  const run = promisify(execFile)("bash", ["-c", command], { cwd, env: all });
  const output = await run.catch((error: { stdout: string; stderr: string }) => error);
  return (output.stdout + output.stderr).replaceAll("\r", "").trimEnd();
}

/** A folder as a reader has it, with `headgate` on the path; its `.bin` is for further programs. */
export async function readerFolder(
  parent: string,
): Promise<{ readonly folder: string; readonly path: string }> {
  const folder = join(parent, "reader");
  const programs = join(folder, ".bin");
  await mkdir(programs, { recursive: true });
  const main = resolve("dist/cli/main.js");
  const script = `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`;
  await writeFile(join(programs, "headgate"), script, { mode: 0o755 });
  return { folder, path: `${programs}:${process.env["PATH"] ?? ""}` };
}
