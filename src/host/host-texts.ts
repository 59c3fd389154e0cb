/**
 * Parsers of kernel texts. Each text may be cut, huge or garbage: a parser then returns undefined,
 * or leaves out what it does not recognize. Only lines that end in a newline count, because all of
 * the kernel's do. So a number that is cut is never read as a smaller one.
 */

/** Maximum number of characters of a text that are read. */
export const hostTextCharsMax = 65_536;

/** The kernel numbers CPUs below this. */
const cpusMax = 8_192;

/** CPU use as counted by its cgroup; a value that its kernel does not count is undefined. */
export interface CpuStat {
  /** CPU time on all CPUs together, in microseconds. */
  readonly usedUs: number | undefined;
  /** Periods of the limit so far, and the number of periods in which the cgroup was throttled. */
  readonly periodsCount: number | undefined;
  readonly throttledCount: number | undefined;
  /** Time for which it was throttled, in microseconds. */
  readonly throttledUs: number | undefined;
}

/**
 * Parses `cpu.stat` of both cgroup versions.
 *
 * Source: Linux, "Control Group v2"; "CFS Bandwidth Control", which counts `throttled_time` in
 * nanoseconds.
 */
export function parseCpuStat(text: string): CpuStat {
  const values = parseFields(text);
  const throttledNs = values.get("throttled_time");
  return {
    usedUs: values.get("usage_usec"),
    periodsCount: values.get("nr_periods"),
    throttledCount: values.get("nr_throttled"),
    throttledUs:
      values.get("throttled_usec") ?? (throttledNs === undefined ? undefined : throttledNs / 1_000),
  };
}

/**
 * Parses `cpu.max`: the number of CPUs that may be used, above 0; undefined without a limit.
 *
 * Example: `150000 100000` is 1.5.
 */
export function parseCpuMax(text: string): number | undefined {
  const [, quota, period] = /^(\d{1,20}) (\d{1,20})\n/.exec(text) ?? [];
  return cpusOf(Number(quota), Number(period));
}

/** Divides `cpu.cfs_quota_us` by `cpu.cfs_period_us`, as `parseCpuMax`; quota -1 is no limit. */
export function parseCfsQuota(quota: string, period: string): number | undefined {
  return cpusOf(parseCountFile(quota), parseCountFile(period));
}

function cpusOf(quotaUs = 0, periodUs = 0): number | undefined {
  return quotaUs > 0 && periodUs > 0 ? quotaUs / periodUs : undefined;
}

/** Parses a file that holds one whole number from 0; undefined for `max` and anything else. */
export function parseCountFile(text: string): number | undefined {
  const [, digits] = /^(\d{1,20})\n/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Time so far in which some tasks, or all, waited for a resource, in microseconds. */
export interface PressureTotals {
  readonly someUs: number | undefined;
  readonly fullUs: number | undefined;
}

/** Parses a pressure file. Source: Linux, "PSI - Pressure Stall Information". */
export function parsePressure(text: string): PressureTotals {
  const totalOf = (kind: string): number | undefined => {
    const line = linesOf(text).find((one) => one.startsWith(`${kind} `)) ?? "";
    const [, total] = / total=(\d{1,20})$/.exec(line) ?? [];
    return total === undefined ? undefined : Number(total);
  };
  return { someUs: totalOf("some"), fullUs: totalOf("full") };
}

/** Time of the usable CPUs so far, in ticks. */
export interface HostTicks {
  readonly busyTicks: number;
  readonly totalTicks: number;
  /** Usable CPUs that are online, from 1. */
  readonly usableCount: number;
  /** CPUs of the host that are online, from 1. */
  readonly cpusCount: number;
}

/**
 * Parses `/proc/stat`. Time that the hypervisor gave to other machines counts as busy, because it
 * was not available. The time of guests is included in that of users.
 *
 * Source: proc_stat(5).
 *
 * @param allowed the CPUs that may be used. Default: all
 */
export function parseProcStat(text: string, allowed?: ReadonlySet<number>): HostTicks | undefined {
  let [busyTicks, totalTicks, usableCount, cpusCount] = [0, 0, 0, 0];
  for (const line of linesOf(text)) {
    const [, cpu, fields] = /^cpu(\d{1,5}) ((?:\d{1,20} ?){4,10})$/.exec(line) ?? [];
    if (cpu === undefined || fields === undefined) continue;
    cpusCount += 1;
    if (allowed !== undefined && !allowed.has(Number(cpu))) continue;
    usableCount += 1;
    const ticks = fields.split(" ", 8).map(Number);
    const [idle = 0, ioWait = 0] = ticks.slice(3);
    const sum = ticks.reduce((total, one) => total + one, 0);
    totalTicks += sum;
    busyTicks += sum - idle - ioWait;
  }
  return usableCount === 0 ? undefined : { busyTicks, totalTicks, usableCount, cpusCount };
}

/** Parses `/proc/loadavg`: threads of the host that run or could run, including the reader. */
export function parseRunnable(text: string): number | undefined {
  const [, runnable] = /^(?:\d{1,9}\.\d\d ){3}(\d{1,9})\/\d{1,9} \d{1,9}\n/.exec(text) ?? [];
  return runnable === undefined ? undefined : Number(runnable);
}

/** Parses `Cpus_allowed_list` of `/proc/self/status`: the numbers of the CPUs it may run on. */
export function parseAllowedCpus(text: string): ReadonlySet<number> | undefined {
  const found = linesOf(text).find((line) => line.startsWith("Cpus_allowed_list:"));
  const [, list] = /:\s*(\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)$/.exec(found ?? "") ?? [];
  if (list === undefined) return undefined;
  const cpus = new Set<number>();
  for (const range of list.split(",")) {
    const [first = 0, last = first] = range.split("-").map(Number);
    if (last >= cpusMax) return undefined;
    for (let cpu = first; cpu <= last; cpu += 1) cpus.add(cpu);
  }
  return cpus.size === 0 ? undefined : cpus;
}

/** Parses `/proc/meminfo`: the part of the memory neither free nor reclaimable, 0 to 1. */
export function parseMeminfoRatio(text: string): number | undefined {
  const values = parseFields(text);
  const [total, available] = [values.get("MemTotal:"), values.get("MemAvailable:")];
  if (total === undefined || available === undefined || total === 0) return undefined;
  return Math.min(1, Math.max(0, 1 - available / total));
}

/** Returns `MemTotal` of `/proc/meminfo`, in bytes. */
export function parseMeminfoBytes(text: string): number | undefined {
  const kibibytes = parseFields(text).get("MemTotal:");
  return kibibytes === undefined ? undefined : kibibytes * 1_024;
}

/**
 * Parses `memory.stat`: the memory that the kernel can reclaim on its own, in bytes. That is the
 * page cache, active or not, and slabs. cgroup v1 counts a whole subtree under `total_`, and no
 * slabs.
 *
 * @returns undefined if the text does not report the page cache
 */
export function parseReclaimable(text: string): number | undefined {
  const values = parseFields(text);
  const of = (name: string): number | undefined => values.get(`total_${name}`) ?? values.get(name);
  const [active, inactive] = [of("active_file"), of("inactive_file")];
  if (active === undefined || inactive === undefined) return undefined;
  return active + inactive + (values.get("slab_reclaimable") ?? 0);
}

/** Parses lines of a name, a whole number and an optional unit. */
function parseFields(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of linesOf(text)) {
    const [, name, digits] = /^([\w:()]{1,64}) +(\d{1,20})(?: kB)?$/.exec(line) ?? [];
    if (name !== undefined && digits !== undefined) values.set(name, Number(digits));
  }
  return values;
}

/** Returns the complete lines. */
export function linesOf(text: string): readonly string[] {
  return text.slice(0, hostTextCharsMax).split("\n").slice(0, -1);
}
