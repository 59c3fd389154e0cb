import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { missingProgramMark, requireProgram } from "./programs.js";

/** Runs the `redis-cli` of the installed Redis; answers its standard output. */
export async function redisCli(port: number, ...words: readonly string[]): Promise<string> {
  const { file, env } = findCli(await requireProgram("redis"));
  const { stdout } = await promisify(execFile)(file, ["-p", String(port), ...words], { env });
  return stdout;
}

/** Beside the server, or in the package's folder, with libraries of its own. */
function findCli(server: string) {
  const beside = join(dirname(server), "redis-cli");
  if (existsSync(beside)) return { file: beside, env: {} };
  const folder = join(dirname(server), "..", "usr");
  const file = join(folder, "bin", "redis-cli");
  if (!existsSync(file)) throw new Error(`${missingProgramMark} redis-cli: not beside ${server}`);
  const libraries = readdirSync(join(folder, "lib")).map((name) => join(folder, "lib", name));
  return { file, env: { LD_LIBRARY_PATH: libraries.join(":") } };
}
