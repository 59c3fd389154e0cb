import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Files of the kernel by their paths, as a machine has them. */
export type HostTree = Readonly<Record<string, string>>;

/** Writes files below a folder, over those that are there. @returns the folder */
export function writeHostTree(folder: string, tree: HostTree): string {
  for (const [path, text] of Object.entries(tree)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return folder;
}

/** A pressure file whose tasks waited so long. */
export function pressureText(someUs: number, fullUs: number): string {
  return (
    `some avg10=0.00 avg60=0.12 avg300=1.05 total=${someUs}\n` +
    `full avg10=0.00 avg60=0.03 avg300=0.44 total=${fullUs}\n`
  );
}

/** `cpu.stat` of the second version. */
export function cpuStatText(usedUs: number, periods = 0, throttled = 0): string {
  return (
    `usage_usec ${usedUs}\nuser_usec ${usedUs}\nsystem_usec 0\ncore_sched.force_idle_usec 0\n` +
    `nr_periods ${periods}\nnr_throttled ${throttled}\nthrottled_usec ${throttled * 5_000}\n` +
    "nr_bursts 0\nburst_usec 0\n"
  );
}

/** `memory.stat` of the second version, with 300 MB that the kernel can take back. */
const memoryStat =
  "anon 104857600\nfile 314572800\nkernel 8388608\nshmem 0\ninactive_anon 104857600\n" +
  "active_anon 0\ninactive_file 200000000\nactive_file 90000000\nunevictable 0\n" +
  "slab_reclaimable 10000000\nslab_unreclaimable 200000\nworkingset_refault_file 4\n";

/** Four CPUs, with this much of one of them used by others, in hundredths of a second. */
export function procStatText(busyTicks: number, idleTicks: number): string {
  const cpu = (name: string, busy: number): string =>
    `${name} ${busy} 0 0 ${idleTicks} 0 0 0 0 0 0\n`;
  const cpus = [0, 1, 2, 3].map((i) => cpu(`cpu${i}`, i === 0 ? busyTicks : 0)).join("");
  const rest = "intr 9000 12 0 0\nctxt 18446\nbtime 1700000000\nprocesses 40\nprocs_running 2\n";
  return `${cpu("cpu ", busyTicks)}${cpus}${rest}`;
}

const proc: HostTree = {
  "proc/stat": procStatText(1_000, 9_000),
  "proc/loadavg": "0.52 0.58 0.59 7/467 11203\n",
  "proc/meminfo":
    "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n" +
    "Buffers:          100000 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n",
  "proc/pressure/cpu": pressureText(7_000_000, 0),
  "proc/pressure/memory": pressureText(3_000_000, 1_000_000),
  "proc/self/status": "Name:\tnode\nUmask:\t0022\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n",
};

const unifiedMount =
  "24 30 0:22 / /proc rw,nosuid - proc proc rw\n" +
  "35 24 0:30 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n";

/** A container in Kubernetes that sees its own cgroup as the root: 1.5 CPUs and 512 MiB. */
export const containerTree: HostTree = {
  ...proc,
  "proc/self/cgroup": "0::/\n",
  "proc/self/mountinfo": unifiedMount,
  "sys/fs/cgroup/cpu.max": "150000 100000\n",
  "sys/fs/cgroup/cpu.stat": cpuStatText(60_000_000, 400, 40),
  "sys/fs/cgroup/cpu.pressure": pressureText(500_000, 400_000),
  "sys/fs/cgroup/memory.max": "536870912\n",
  "sys/fs/cgroup/memory.current": "434217728\n",
  "sys/fs/cgroup/memory.stat": memoryStat,
  "sys/fs/cgroup/memory.pressure": pressureText(20_000, 10_000),
};

const slice = "sys/fs/cgroup/kubepods.slice";
const pod = `${slice}/kubepods-burstable-pod1.slice`;

/** A container in the host's cgroup namespace; its pod has limits, and it has none itself. */
export const nestedTree: HostTree = {
  ...proc,
  "proc/self/cgroup": "0::/kubepods.slice/kubepods-burstable-pod1.slice/cri-1.scope\n",
  "proc/self/mountinfo": unifiedMount,
  "sys/fs/cgroup/cpu.stat": cpuStatText(900_000_000),
  [`${slice}/cpu.max`]: "max 100000\n",
  [`${slice}/cpu.stat`]: cpuStatText(800_000_000),
  [`${slice}/memory.max`]: "max\n",
  [`${pod}/cpu.max`]: "200000 100000\n",
  [`${pod}/cpu.stat`]: cpuStatText(90_000_000, 100, 10),
  [`${pod}/cpu.pressure`]: pressureText(600_000, 0),
  [`${pod}/memory.max`]: "1073741824\n",
  [`${pod}/memory.current`]: "1036870912\n",
  [`${pod}/memory.stat`]: memoryStat,
  [`${pod}/memory.pressure`]: pressureText(30_000, 20_000),
  [`${pod}/cri-1.scope/cpu.max`]: "max 100000\n",
  [`${pod}/cri-1.scope/cpu.stat`]: cpuStatText(70_000_000, 0, 0),
  [`${pod}/cri-1.scope/memory.max`]: "max\n",
};

const dockerId = "/docker/8d5c7f1f0a1e";

/** A container of the first version, whose path is the host's: half a CPU and 256 MiB. */
export const firstVersionTree: HostTree = {
  ...proc,
  "proc/self/cgroup":
    `12:memory:${dockerId}\n11:cpu,cpuacct:${dockerId}\n10:cpuset:${dockerId}\n` +
    `1:name=systemd:${dockerId}\n`,
  "proc/self/mountinfo":
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
    `32 31 0:29 ${dockerId} /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n` +
    `33 31 0:30 ${dockerId} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n`,
  "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
  "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
  "sys/fs/cgroup/cpu,cpuacct/cpu.stat":
    "nr_periods 300\nnr_throttled 30\nthrottled_time 1500000000\n",
  "sys/fs/cgroup/cpu,cpuacct/cpuacct.usage": "12000000000\n",
  "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
  "sys/fs/cgroup/memory/memory.usage_in_bytes": "234217728\n",
  "sys/fs/cgroup/memory/memory.stat":
    "cache 100000000\nrss 134217728\ninactive_file 1\nactive_file 1\n" +
    "hierarchical_memory_limit 268435456\ntotal_cache 100000000\n" +
    "total_inactive_file 60000000\ntotal_active_file 40000000\n",
};

/** A service of a host with both versions mounted, and no limit but those that say "none". */
export const bareTree: HostTree = {
  ...proc,
  "proc/self/cgroup": "4:memory:/\n2:cpuacct:/\n1:cpu:/\n0::/system.slice/headgate.service\n",
  "proc/self/mountinfo":
    "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
    "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
  "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
  "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
  "sys/fs/cgroup/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
  "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
  "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000000000\n",
  "sys/fs/cgroup/unified/system.slice/headgate.service/cpu.stat": cpuStatText(1_000),
};
