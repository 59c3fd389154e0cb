import { mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCgroups } from "../../src/host/cgroups.js";
import type { ChildProgram } from "./child-program.js";
import { realRandom } from "./real-clock.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** A cgroup of this machine, as a container has one. */
export interface TestCgroup {
  /** Its folders by controller; "" is the second version. */
  readonly folders: Readonly<Record<string, string>>;
}

/**
 * Makes a cgroup that may use a fifth of a CPU and 200 MB.
 *
 * @returns undefined where this machine lets nobody make one
 */
export function makeCgroup(stage: Stage): TestCgroup | undefined {
  const own = findCgroups(
    readFileSync("/proc/self/cgroup", "utf8"),
    readFileSync("/proc/self/mountinfo", "utf8"),
  );
  const name = `headgate-test-${realRandom.id()}`;
  const folders: Record<string, string> = {};
  const make = (controller: string, parent = "/", limits: Record<string, string> = {}): void => {
    const folder = join(parent, name);
    // Controllers may share a mount.
    if (!Object.values(folders).includes(folder)) {
      mkdirSync(folder);
      stage.atEnd(() => waitFor("the cgroup is empty", () => rmdirSync(folder) === undefined));
    }
    folders[controller] = folder;
    for (const [file, text] of Object.entries(limits)) writeFileSync(join(folder, file), text);
  };
  try {
    if (own.cpu === undefined) {
      make("", own.unified?.at(-1), { "cpu.max": "20000 100000", "memory.max": "200000000" });
    } else {
      make("cpu", own.cpu[0], { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000" });
      make("cpuacct", own.cpuacct?.[0]);
      make("memory", own.memory?.[0], { "memory.limit_in_bytes": "200000000" });
    }
  } catch {
    return undefined;
  }
  return { folders };
}

/** Shows a cgroup, and nothing else of the host, below a folder. @returns the folder */
export function mountCgroup(folder: string, { folders }: TestCgroup): string {
  mkdirSync(join(folder, "sys/fs"), { recursive: true });
  const mount = join(folder, "sys/fs/cgroup");
  if (folders[""] !== undefined) symlinkSync(folders[""], mount);
  else mkdirSync(mount);
  for (const [controller, target] of Object.entries(folders)) {
    if (controller !== "") symlinkSync(target, join(mount, controller));
  }
  return folder;
}

/** Starts a Node that is in the cgroup from its first instruction on. */
export function startInCgroup(
  stage: Stage,
  cgroup: TestCgroup | undefined,
  { name, args }: { readonly name: string; readonly args: readonly string[] },
): ChildProgram {
  const joins = Object.values(cgroup?.folders ?? {})
    .map((folder) => `echo $$ > '${folder}/cgroup.procs' && `)
    .join("");
  const shell = ["-c", `${joins}exec "$0" "$@"`, process.execPath];
  const program = stage.spawn({ name, file: "sh", args: [...shell, ...args] });
  // A cgroup can be removed once nobody is in it.
  stage.atEnd(() => program.kill());
  return program;
}

/** Uses one CPU, or what the cgroup may have of it, after everybody else. */
export function burnCpu(stage: Stage, cgroup?: TestCgroup): ChildProgram {
  const args = ["-e", "os.setPriority(19); for (;;);"];
  return startInCgroup(stage, cgroup, { name: "burner", args });
}
