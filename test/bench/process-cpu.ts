import { readFileSync } from "node:fs";

/** Clock ticks a second of /proc/<pid>/stat: fixed to 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** User and system time that a process has used so far, in microseconds. Source: proc(5), stat. */
export function processCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The second field is the program's name in parentheses and may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return (ticks / ticksPerSecond) * 1_000_000;
}

/**
 * What the first thread of a process has used so far, in microseconds, to the nanosecond: in a
 * server of one thread, short turns can be compared. Source: Linux, sched-stats, /proc/<pid>.
 */
export function mainThreadCpuUs(pid: number): number {
  const [ranNs] = readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ");
  return Number(ranNs) / 1_000;
}
