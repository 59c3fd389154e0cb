import type { Program } from "../../src/programs/programs.js";
import { lookUp, thisMachine } from "../../src/programs/provision.js";
import { optionalTools, type ToolName, tools } from "./tools.js";

/** Begins the message of a test that could not run; the whole suite's report looks for it. */
export const missingProgramMark = "MISSING PROGRAM";

/** The same for a program that not every machine can have: then also CI goes without. */
export const missingOptionalMark = "MISSING OPTIONAL PROGRAM";

const known = new Map<ToolName, Promise<Program>>();

/**
 * The path of a program that a test runs. Under `npm test` it has been found or installed before;
 * elsewhere it is looked up, and nothing is installed. Throws when there is none: a test that could
 * not run is never a test that passed. Looked up once a process: each look runs the program.
 */
export async function requireProgram(name: ToolName): Promise<string> {
  const looked = known.get(name) ?? lookUp(tools[name], thisMachine());
  known.set(name, looked);
  const program = await looked;
  if (program.kind === "found") return program.path;
  const { command } = tools[name];
  const mark = optionalTools.has(name) ? missingOptionalMark : missingProgramMark;
  throw new Error(`${mark} ${command}: ${program.why}; ${program.hint}`);
}
