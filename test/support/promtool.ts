import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { requireProgram } from "./programs.js";
import type { Stage } from "./stage.js";
import { within } from "./wait.js";

/** How long one run of promtool may take, in milliseconds. */
const promtoolMsMax = 60_000;

/** Runs a real promtool; answers whether it was content, and what it said. */
export async function runPromtool(
  stage: Stage,
  args: readonly string[],
): Promise<{ readonly isOk: boolean; readonly output: string }> {
  const file = await requireProgram("promtool");
  // It lives for a moment, in which collecting garbage is a third of its time.
  const program = stage.spawn({ name: "promtool", file, args, env: { GOGC: "400" } });
  const exit = await within("promtool has ended", promtoolMsMax, program.exited);
  return { isOk: "code" in exit && exit.code === 0, output: program.output };
}

/** Writes texts by path below a folder. */
export function writeTexts(folder: string, texts: ReadonlyMap<string, string>): void {
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
