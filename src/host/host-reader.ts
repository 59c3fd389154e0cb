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

/** Values of the host at one time. Counters only grow. A value that the host lacks is undefined. */
export interface HostSample {
  /** Cgroups that have a CPU limit, the innermost first. */
  readonly limitedCpu: readonly LimitedCpu[];
  readonly ticks: HostTicks | undefined;
  readonly cpuPressure: PressureTotals | undefined;
  /** Memory in use over its limit, or over all memory of the host, 0 to 1. */
  readonly memoryRatio: number | undefined;
  readonly memoryPressure: PressureTotals | undefined;
  /** Threads of the host that run or could, without the one that read this. */
  readonly runnableCount: number | undefined;
  /** CPUs of the host that are online. */
  readonly cpusCount: number | undefined;
}

/** A cgroup whose CPU limit is below the number of usable CPUs. */
interface LimitedCpu {
  /** Identifies the cgroup from one sample to the next. */
  readonly folder: string;
  /** Number of CPUs that it may use, above 0. */
  readonly cpusMax: number;
  readonly usedUs: number | undefined;
  readonly periodsCount: number | undefined;
  readonly throttledCount: number | undefined;
}

/** Throttling of a cgroup so far. */
interface Throttling {
  readonly throttledCount: number;
  readonly throttledUs: number;
}

/** CPU files of a cgroup, of either cgroup version. */
interface CpuGroup {
  readonly folder: string;
  cpusMax(): number | undefined;
  stat(): string;
  usedUs(): number | undefined;
}

/** Memory files of a cgroup. */
interface MemoryGroup {
  readonly folder: string;
  readonly current: string;
  readonly limit: string;
}

/**
 * Reads kernel files: those of the cgroups that limit this process, or of the host if none does.
 * What is missing or unreadable is left out. The cgroups' folders are located once. Their limits
 * are read each time, because they change while a process runs.
 */
export class HostReader {
  readonly #root: string;
  readonly #buffer = Buffer.alloc(hostTextCharsMax);
  readonly #cgroups: Cgroups;
  readonly #allowedCpus: ReadonlySet<number> | undefined;
  readonly #cpuGroups: readonly CpuGroup[];
  readonly #memoryGroups: readonly MemoryGroup[];

  /** @param root the folder that contains `proc` and `sys/fs/cgroup`. Default `/` */
  constructor(root = "/") {
    this.#root = root.replace(/\/+$/, "");
    this.#cgroups = this.#find();
    this.#allowedCpus = parseAllowedCpus(this.#text("/proc/self/status"));
    this.#cpuGroups = [...this.#unifiedCpu(), ...this.#firstVersionCpu()];
    this.#memoryGroups = memoryGroups(this.#cgroups);
  }

  /** Takes a sample, in some tens of microseconds. */
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

  /** Returns the throttling of the innermost cgroup that reports it; undefined if none does. */
  throttling(): Throttling | undefined {
    for (const group of this.#cpuGroups) {
      const { throttledCount, throttledUs } = parseCpuStat(group.stat());
      if (throttledCount !== undefined) return { throttledCount, throttledUs: throttledUs ?? 0 };
    }
    return undefined;
  }

  /** Without `/proc/self`, the cgroup mounted as `/sys/fs/cgroup` is used. */
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

  /** Returns the cgroups whose limit is below the number of usable CPUs. */
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

  /** Returns the fullest of the cgroups that have a limit, or the host if none has. */
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

  /** Reads the cgroup whose limit counts, else the host, else this process's own cgroup. */
  #pressure(kind: "cpu" | "memory", folder: string | undefined): PressureTotals | undefined {
    const [own] = this.#cgroups.unified ?? [];
    const paths = [folder && `${folder}/${kind}.pressure`, `/proc/pressure/${kind}`];
    for (const path of [...paths, own && `${own}/${kind}.pressure`]) {
      const text = path === undefined ? "" : this.#text(path);
      if (text !== "") return parsePressure(text);
    }
    return undefined;
  }

  /** Returns the text of a file, up to the buffer's size; empty if there is no such file. */
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
      // The file belongs to the system, which may not have it or may refuse access.
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
