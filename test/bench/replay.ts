import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processCpuUs } from "./process-cpu.js";
import {
  type ReplayFormat,
  replayFormats,
  writeReplayLog,
  writeReplayPolicy,
} from "./replay-logs.js";
import { layOut } from "./report.js";

/** What a log of one format took. */
interface ReplayRow {
  readonly format: ReplayFormat;
  readonly bytesPerLine: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

/** How often the process is looked at: after its end its CPU is not known any more. */
const lookEveryMs = 20;

/** Runs `headgate replay` over logs of so many lines, one a format, and tells what they took. */
export async function tellReplay(lineCount: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "headgate-replay-"));
  try {
    const policy = await writeReplayPolicy(directory);
    const rows: ReplayRow[] = [];
    for (const format of replayFormats) {
      process.stderr.write(`replay, ${format} ...\n`);
      const log = await writeReplayLog(directory, { format, lineCount });
      const bytesPerLine = (await stat(log)).size / lineCount;
      rows.push({ format, bytesPerLine, ...(await measureReplay(policy, log)) });
      await rm(log);
    }
    const cells = rows.map(({ format, bytesPerLine, seconds, cpuSeconds }) => [
      format,
      bytesPerLine.toFixed(0),
      seconds.toFixed(1),
      cpuSeconds.toFixed(1),
      ((seconds * 1_000_000) / lineCount).toFixed(1),
      ((cpuSeconds * 1_000_000) / lineCount).toFixed(1),
    ]);
    const title = `replay of ${lineCount.toLocaleString("en-US")} lines`;
    const header = [title, "bytes/line", "seconds", "CPU seconds", "us/line", "CPU us/line"];
    return layOut([header, ...cells]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Runs the command as people do: from the start of its process to its end. */
async function measureReplay(
  policy: string,
  log: string,
): Promise<Pick<ReplayRow, "seconds" | "cpuSeconds">> {
  const startMs = performance.now();
  const command = ["dist/cli/main.js", "replay", "--policy", policy, log];
  const child = spawn(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"] });
  let cpuUs = 0;
  const look = (): void => {
    if (child.pid !== undefined && child.exitCode === null) cpuUs = processCpuUs(child.pid);
  };
  const timer = setInterval(look, lookEveryMs);
  try {
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`headgate replay ended with ${code}`);
  } finally {
    clearInterval(timer);
  }
  return { seconds: (performance.now() - startMs) / 1_000, cpuSeconds: cpuUs / 1_000_000 };
}
