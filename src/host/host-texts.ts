/**
 * Texts of the kernel, parsed. Each text may be cut, huge or garbage: a parser then returns
 * undefined, or leaves out what it does not know. Only lines that end in a newline count, as all
 * of the kernel's do, so that a number that is cut is never taken for a smaller one.
 */

/** The most characters of a text that are looked at. */
export const hostTextCharsMax = 65_536;

/** The kernel has numbers of CPUs below this. */
const cpusMax = 8_192;

/** Use of the CPU as its cgroup counts it; what its kernel does not count is undefined. */
export interface CpuStat {
  /** CPU time on all CPUs together, in microseconds. */
  readonly usedUs: number | undefined;
  /** Periods of the limit so far, and in how many of them it throttled the cgroup. */
  readonly periodsCount: number | undefined;
  readonly throttledCount: number | undefined;
  /** How long it was throttled, in microseconds. */
  readonly throttledUs: number | undefined;
}

/**
 * `cpu.stat` of both versions of cgroups.
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
 * `cpu.max`: how many CPUs may be used, above 0; undefined without a limit.
 *
 * Example: `150000 100000` is 1.5.
 */
export function parseCpuMax(text: string): number | undefined {
  const [, quota, period] = /^(\d{1,20}) (\d{1,20})\n/.exec(text) ?? [];
  return cpusOf(Number(quota), Number(period));
}

/** `cpu.cfs_quota_us` over `cpu.cfs_period_us`, as `parseCpuMax`; a quota of -1 is no limit. */
export function parseCfsQuota(quota: string, period: string): number | undefined {
  return cpusOf(parseCountFile(quota), parseCountFile(period));
}

function cpusOf(quotaUs = 0, periodUs = 0): number | undefined {
  return quotaUs > 0 && periodUs > 0 ? quotaUs / periodUs : undefined;
}

/** A file that is one whole number from 0; undefined for `max` and all else. */
export function parseCountFile(text: string): number | undefined {
  const [, digits] = /^(\d{1,20})\n/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** For how long so far some tasks, or all, have waited for a resource, in microseconds. */
export interface PressureTotals {
  readonly someUs: number | undefined;
  readonly fullUs: number | undefined;
}

/** A file of pressure. Source: Linux, "PSI - Pressure Stall Information". */
export function parsePressure(text: string): PressureTotals {
  const totalOf = (kind: string): number | undefined => {
    const line = linesOf(text).find((one) => one.startsWith(`${kind} `)) ?? "";
    const [, total] = / total=(\d{1,20})$/.exec(line) ?? [];
    return total === undefined ? undefined : Number(total);
  };
  return { someUs: totalOf("some"), fullUs: totalOf("full") };
}

/** What the CPUs that may be used did so far, in ticks. */
export interface HostTicks {
  readonly busyTicks: number;
  readonly totalTicks: number;
  /** Those CPUs, as far as they are online, from 1. */
  readonly usableCount: number;
  /** CPUs of the host that are online, from 1. */
  readonly cpusCount: number;
}

/**
 * `/proc/stat`. Time that the hypervisor gave to others counts as busy: it was not there to be had.
 * The time of guests is in that of users.
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

/** `/proc/loadavg`: how many threads of the host run or could run, with the one that reads it. */
export function parseRunnable(text: string): number | undefined {
  const [, runnable] = /^(?:\d{1,9}\.\d\d ){3}(\d{1,9})\/\d{1,9} \d{1,9}\n/.exec(text) ?? [];
  return runnable === undefined ? undefined : Number(runnable);
}

/** `Cpus_allowed_list` of `/proc/self/status`: the CPUs that the process may run on, by number. */
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

/** `/proc/meminfo`: the part of the host's memory that is neither free nor reclaimable, 0 to 1. */
export function parseMeminfoRatio(text: string): number | undefined {
  const values = parseFields(text);
  const [total, available] = [values.get("MemTotal:"), values.get("MemAvailable:")];
  if (total === undefined || available === undefined || total === 0) return undefined;
  return Math.min(1, Math.max(0, 1 - available / total));
}

/** `MemTotal` of `/proc/meminfo`, in bytes. */
export function parseMeminfoBytes(text: string): number | undefined {
  const kibibytes = parseFields(text).get("MemTotal:");
  return kibibytes === undefined ? undefined : kibibytes * 1_024;
}

/**
 * `memory.stat`: what the kernel can take back without asking anybody, in bytes. That is the page
 * cache, recently used or not, and slabs; the first version counts a whole subtree under `total_`,
 * and no slabs.
 *
 * @returns undefined where it says nothing of the page cache
 */
export function parseReclaimable(text: string): number | undefined {
  const values = parseFields(text);
  const of = (name: string): number | undefined => values.get(`total_${name}`) ?? values.get(name);
  const [active, inactive] = [of("active_file"), of("inactive_file")];
  if (active === undefined || inactive === undefined) return undefined;
  return active + inactive + (values.get("slab_reclaimable") ?? 0);
}

/** Lines of a name and a whole number, and maybe a unit. */
function parseFields(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of linesOf(text)) {
    const [, name, digits] = /^([\w:()]{1,64}) +(\d{1,20})(?: kB)?$/.exec(line) ?? [];
    if (name !== undefined && digits !== undefined) values.set(name, Number(digits));
  }
  return values;
}

/** The lines that are whole. */
export function linesOf(text: string): readonly string[] {
  return text.slice(0, hostTextCharsMax).split("\n").slice(0, -1);
}
