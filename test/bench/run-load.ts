import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type LoadOrder, type LoadReport, measuringMark } from "./load.js";
import { processCpuUs } from "./process-cpu.js";

/** A load's report, and what processes have used in the time that it is about. */
export interface MeasuredLoad {
  readonly report: LoadReport;
  /** User and system time of each process that was asked about, in microseconds. */
  readonly cpuUs: readonly number[];
  /** That of the load itself. */
  readonly loadCpuUs: number;
}

/**
 * Runs a load in a process of its own, so that its work is not counted as the server's.
 *
 * @param pids processes whose CPU is read when the measurement begins and ends
 */
export function measureLoad(order: LoadOrder, pids: readonly number[]): Promise<MeasuredLoad> {
  const script = fileURLToPath(new URL("./load.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, "run"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { pid: loadPid } = child;
  if (loadPid === undefined) throw new Error("the load process never started");
  child.stdin.end(JSON.stringify(order));
  const readAll = (): readonly number[] => [loadPid, ...pids].map(processCpuUs);
  let before: readonly number[] | undefined;
  let after: readonly number[] = [];
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    // While it lives: a process that has ended has no CPU to be read.
    after = readAll();
    if (text.startsWith(measuringMark)) before ??= after;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code !== 0 || before === undefined) {
        reject(new Error(`the load process ended with ${code}`));
        return;
      }
      const report = JSON.parse(text.slice(measuringMark.length)) as LoadReport;
      const [loadCpuUs = 0, ...cpuUs] = after.map((us, i) => us - (before?.[i] ?? 0));
      resolve({ report, cpuUs, loadCpuUs });
    });
  });
}
