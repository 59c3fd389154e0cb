import { closeSync, openSync, readSync } from "node:fs";
import type { Stage } from "./stage.js";

/** Tells, in milliseconds and ever rising, how long this machine has kept processes waiting. */
export type WithheldTime = () => number;

/** The numbers of a thread stand on one short line. */
const lineBytesMax = 128;

/**
 * Time for which the process of these tests, or another one, could have run and was given no core:
 * their main threads', added up. What a test promises of answer times it promises of the program,
 * and not of a machine that is busy with other work, so such time is taken off. Nothing is taken
 * off where the system does not tell, or a process has ended.
 * Source: Linux, Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
 */
export function withheldTime(stage: Stage, pid = process.pid): WithheldTime {
  const waits = [...new Set([process.pid, pid])].map((one) => waitOf(stage, one));
  return () => waits.reduce((sumMs, waitMs) => sumMs + waitMs(), 0);
}

/** What something comes to, and how long it took, less the time that was withheld meanwhile. */
export async function timed<T>(
  withheldMs: WithheldTime,
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly ownMs: number }> {
  const startMs = performance.now() - withheldMs();
  const result = await run();
  return { result, ownMs: performance.now() - withheldMs() - startMs };
}

function waitOf(stage: Stage, pid: number): WithheldTime {
  const file = openStatistics(pid);
  if (file === undefined) return () => 0;
  stage.atEnd(() => closeSync(file));
  const line = Buffer.alloc(lineBytesMax);
  let waitedMs = 0;
  return () => {
    try {
      const text = line.toString("latin1", 0, readSync(file, line, 0, lineBytesMax, 0));
      waitedMs = Number(text.split(" ")[1]) / 1_000_000;
    } catch {
      // It has ended: what is known stays.
    }
    return waitedMs;
  };
}

function openStatistics(pid: number): number | undefined {
  try {
    return openSync(`/proc/${pid}/schedstat`, "r");
  } catch {
    return undefined;
  }
}
