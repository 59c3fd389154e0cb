import { closeSync, openSync, readSync } from "node:fs";
import { type Cgroups, findCgroups } from "./cgroups.js";
import {
  type HostTicks,
  hostTextCharsMax,
  type PressureTotals,
  parseAllowedCpus,
  parseCfsQuota,
  parseCountFile,
  parseCpuMax,
  parseCpuStat,
  parseMeminfoBytes,
  parseMeminfoRatio,
  parsePressure,
  parseProcStat,
  parseReclaimable,
  parseRunnable,
} from "./host-texts.js";

/** What the host said at one time. Counters only grow; what it does not have is undefined. */
export interface HostSample {
  /** Cgroups that have a CPU limit, the innermost first. */
  readonly limitedCpu: readonly LimitedCpu[];
  readonly ticks: HostTicks | undefined;
  readonly cpuPressure: PressureTotals | undefined;
  /** Memory in use over its limit, or over all of it, 0 to 1. */
  readonly memoryRatio: number | undefined;
  readonly memoryPressure: PressureTotals | undefined;
  /** Threads of the host that run or could, without the one that read this. */
  readonly runnableCount: number | undefined;
  /** CPUs of the host that are online. */
  readonly cpusCount: number | undefined;
}

/** A cgroup that may not use all CPUs. */
interface LimitedCpu {
  /** Names it from one sample to the next. */
  readonly folder: string;
  /** How many CPUs it may use, above 0. */
  readonly cpusMax: number;
  readonly usedUs: number | undefined;
  readonly periodsCount: number | undefined;
  readonly throttledCount: number | undefined;
}

/** How a cgroup was throttled so far. */
interface Throttling {
  readonly throttledCount: number;
  readonly throttledUs: number;
}

/** A cgroup's files for the CPU, whichever version it is. */
interface CpuGroup {
  readonly folder: string;
  cpusMax(): number | undefined;
  stat(): string;
  usedUs(): number | undefined;
}

/** A cgroup's files for memory. */
interface MemoryGroup {
  readonly folder: string;
  readonly current: string;
  readonly limit: string;
}

/**
 * Reads files of the kernel: those of the cgroups that limit this process, and of the host where
 * none does. What is missing, or cannot be read, is left out. Where cgroups are is found once;
 * their limits are read each time, since they change while a process runs.
 */
export class HostReader {
  readonly #root: string;
  readonly #buffer = Buffer.alloc(hostTextCharsMax);
  readonly #cgroups: Cgroups;
  readonly #allowedCpus: ReadonlySet<number> | undefined;
  readonly #cpuGroups: readonly CpuGroup[];
  readonly #memoryGroups: readonly MemoryGroup[];

  /** @param root the folder in which `proc` and `sys/fs/cgroup` are. Default `/` */
  constructor(root = "/") {
    this.#root = root.replace(/\/+$/, "");
    this.#cgroups = this.#find();
    this.#allowedCpus = parseAllowedCpus(this.#text("/proc/self/status"));
    this.#cpuGroups = [...this.#unifiedCpu(), ...this.#firstVersionCpu()];
    this.#memoryGroups = memoryGroups(this.#cgroups);
  }

  /** Some tens of microseconds. */
  read(): HostSample {
    const ticks = parseProcStat(this.#text("/proc/stat"), this.#allowedCpus);
    const limitedCpu = this.#limitedCpu(ticks?.usableCount);
    const memory = this.#memory();
    const runnableCount = parseRunnable(this.#text("/proc/loadavg"));
    return {
      limitedCpu,
      ticks,
      cpuPressure: this.#pressure("cpu", limitedCpu[0]?.folder),
      memoryRatio: memory.ratio,
      memoryPressure: this.#pressure("memory", memory.folder),
      runnableCount: runnableCount && runnableCount - 1,
      cpusCount: ticks?.cpusCount,
    };
  }

  /** How the innermost cgroup that says so was throttled; undefined where none does. */
  throttling(): Throttling | undefined {
    for (const group of this.#cpuGroups) {
      const { throttledCount, throttledUs } = parseCpuStat(group.stat());
      if (throttledCount !== undefined) return { throttledCount, throttledUs: throttledUs ?? 0 };
    }
    return undefined;
  }

  /** Without `/proc/self`, what is mounted as `/sys/fs/cgroup` is the cgroup that is meant. */
  #find(): Cgroups {
    const mountinfo = this.#text("/proc/self/mountinfo");
    if (mountinfo !== "") return findCgroups(this.#text("/proc/self/cgroup"), mountinfo);
    const folders = (name: string): readonly string[] => [`/sys/fs/cgroup${name}`];
    return {
      unified: folders(""),
      cpu: folders("/cpu"),
      cpuacct: folders("/cpuacct"),
      memory: folders("/memory"),
    };
  }

  *#unifiedCpu(): Iterable<CpuGroup> {
    for (const folder of this.#cgroups.unified ?? []) {
      const stat = (): string => this.#text(`${folder}/cpu.stat`);
      yield {
        folder,
        cpusMax: () => parseCpuMax(this.#text(`${folder}/cpu.max`)),
        stat,
        usedUs: () => parseCpuStat(stat()).usedUs,
      };
    }
  }

  *#firstVersionCpu(): Iterable<CpuGroup> {
    const { cpu = [], cpuacct = [] } = this.#cgroups;
    for (const [i, folder] of cpu.entries()) {
      const text = (name: string): string => this.#text(`${folder}/${name}`);
      const usedNs = (): number | undefined =>
        parseCountFile(this.#text(`${cpuacct[i]}/cpuacct.usage`));
      yield {
        folder,
        cpusMax: () => parseCfsQuota(text("cpu.cfs_quota_us"), text("cpu.cfs_period_us")),
        stat: () => text("cpu.stat"),
        usedUs: () => divided(usedNs(), 1_000),
      };
    }
  }

  /** Those whose limit is below what may be used anyway. */
  #limitedCpu(usableCount = Number.POSITIVE_INFINITY): readonly LimitedCpu[] {
    const limited: LimitedCpu[] = [];
    for (const group of this.#cpuGroups) {
      const cpusMax = group.cpusMax();
      if (cpusMax === undefined || cpusMax >= usableCount) continue;
      const { folder } = group;
      const { periodsCount, throttledCount } = parseCpuStat(group.stat());
      limited.push({ folder, cpusMax, usedUs: group.usedUs(), periodsCount, throttledCount });
    }
    return limited;
  }

  /** The fullest of the cgroups that have a limit, or the host. */
  #memory(): { readonly ratio: number | undefined; readonly folder?: string } {
    const meminfo = this.#text("/proc/meminfo");
    const hostBytes = parseMeminfoBytes(meminfo) ?? Number.MAX_SAFE_INTEGER;
    let fullest: { readonly ratio: number; readonly folder: string } | undefined;
    for (const { folder, current, limit } of this.#memoryGroups) {
      const limitBytes = parseCountFile(this.#text(`${folder}/${limit}`));
      if (limitBytes === undefined || limitBytes === 0 || limitBytes >= hostBytes) continue;
      const usedBytes = parseCountFile(this.#text(`${folder}/${current}`));
      const reclaimableBytes = parseReclaimable(this.#text(`${folder}/memory.stat`));
      if (usedBytes === undefined || reclaimableBytes === undefined) continue;
      const ratio = Math.min(1, Math.max(0, (usedBytes - reclaimableBytes) / limitBytes));
      if (fullest === undefined || ratio > fullest.ratio) fullest = { ratio, folder };
    }
    return fullest ?? { ratio: parseMeminfoRatio(meminfo) };
  }

  /** Of the cgroup whose limit counts, of the host where none does, or of what is known at all. */
  #pressure(kind: "cpu" | "memory", folder: string | undefined): PressureTotals | undefined {
    const [own] = this.#cgroups.unified ?? [];
    const paths = [folder && `${folder}/${kind}.pressure`, `/proc/pressure/${kind}`];
    for (const path of [...paths, own && `${own}/${kind}.pressure`]) {
      const text = path === undefined ? "" : this.#text(path);
      if (text !== "") return parsePressure(text);
    }
    return undefined;
  }

  /** The text of a file, as far as it is looked at; empty where there is none. */
  #text(path: string): string {
    let file: number | undefined;
    try {
      file = openSync(`${this.#root}${path}`, "r");
      for (let length = 0; ; ) {
        const count = readSync(file, this.#buffer, { offset: length });
        length += count;
        if (count === 0) return this.#buffer.toString("utf8", 0, length);
      }
    } catch {
      // It belongs to the system, which need not have it, and may refuse it.
      return "";
    } finally {
      if (file !== undefined) closeSync(file);
    }
  }
}

function memoryGroups({ unified = [], memory = [] }: Cgroups): readonly MemoryGroup[] {
  return [
    ...unified.map((folder) => ({ folder, current: "memory.current", limit: "memory.max" })),
    ...memory.map((folder) => ({
      folder,
      current: "memory.usage_in_bytes",
      limit: "memory.limit_in_bytes",
    })),
  ];
}

function divided(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value / by;
}
