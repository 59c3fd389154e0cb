import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

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

/** The program as a process of its own, for each command of a shell. */
function commandScript(): string {
  return `#!/bin/sh\nexec "${process.execPath}" "${resolve("dist/cli/main.js")}" "$@"\n`;
}

/**
 * The same for many commands: one process runs them until the stage ends, where each costs a fifth
 * of a start. They have no standard input.
 */
export async function hostedCommandScript(stage: Stage): Promise<string> {
  const path = fileURLToPath(new URL("./command-host-program.mjs", import.meta.url));
  const file = process.execPath;
  const host = stage.spawn({ name: "commands", file, args: [path, stage.folder] });
  const [, port = ""] = await waitFor("it listens", () => /port (\d+)/.exec(host.output) ?? false);
  return `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/${port} || exit 1
{ printf '%s\\0' "$PWD" "$#" "$@"; env -0; printf '\\0'; } >&3
read -r code out err <&3
cat "$out"
cat "$err" >&2
exit "$code"
`;
}

/** A folder as a reader has it, with `headgate` on the path; its `.bin` is for further programs. */
export async function readerFolder(
  parent: string,
  script = commandScript(),
): Promise<{ readonly folder: string; readonly path: string }> {
  const folder = join(parent, "reader");
  const programs = join(folder, ".bin");
  await mkdir(programs, { recursive: true });
  await writeFile(join(programs, "headgate"), script, { mode: 0o755 });
  return { folder, path: `${programs}:${process.env["PATH"] ?? ""}` };
}
