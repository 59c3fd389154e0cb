import { linesOf } from "./host-texts.js";

/** Folders of the cgroups that a process is in: its own first, then each that it is in. */
export type CgroupFolders = readonly string[];

/** Where the kernel counts what the cgroups of this process use, by controller. */
export interface Cgroups {
  /** The second version, which has one tree for all; undefined where it is not mounted. */
  readonly unified: CgroupFolders | undefined;
  /** The first version: one tree for each of these controllers that is mounted so. */
  readonly cpu: CgroupFolders | undefined;
  readonly cpuacct: CgroupFolders | undefined;
  readonly memory: CgroupFolders | undefined;
}

/** The most cgroups within each other that are looked at: the innermost ones. */
export const cgroupDepthMax = 16;

/** The longest path of a cgroup, as of any path. */
const pathCharsMax = 4_096;

/**
 * Finds the folders of the cgroups of a process.
 *
 * A container may see its own cgroup as the root (a cgroup namespace), or the path that the host
 * knows it by while only its own part is mounted: then that part's root is what is cut off. Where
 * neither explains the path, the process is in a cgroup that is not mounted here, and the mounted
 * one stands for it.
 *
 * Source: cgroups(7), cgroup_namespaces(7), proc_pid_mountinfo(5).
 *
 * @param cgroup the text of `/proc/self/cgroup`
 * @param mountinfo the text of `/proc/self/mountinfo`
 */
export function findCgroups(cgroup: string, mountinfo: string): Cgroups {
  const paths = parseCgroupPaths(cgroup);
  const mounts = parseCgroupMounts(mountinfo);
  const foldersOf = (controller: string): CgroupFolders | undefined => {
    const mount = mounts.get(controller);
    return mount && foldersWithin(mount, paths.get(controller) ?? "/");
  };
  return {
    unified: foldersOf(""),
    cpu: foldersOf("cpu"),
    cpuacct: foldersOf("cpuacct"),
    memory: foldersOf("memory"),
  };
}

/** Paths by controller; "" is the second version. */
function parseCgroupPaths(text: string): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const line of linesOf(text)) {
    const [, controllers = "", path = ""] = /^\d{1,9}:([^:]{0,256}):(\/.*)$/.exec(line) ?? [];
    if (path === "" || path.length > pathCharsMax) continue;
    for (const controller of controllers.split(",")) paths.set(controller, path);
  }
  return paths;
}

interface CgroupMount {
  /** The part of the tree that is mounted. */
  readonly root: string;
  readonly folder: string;
}

/**
 * Mounts by controller; "" is the second version. A tree that is mounted a second time elsewhere is
 * somebody else's; one that is mounted over it hides it.
 */
function parseCgroupMounts(text: string): ReadonlyMap<string, CgroupMount> {
  const mounts = new Map<string, CgroupMount>();
  const add = (controller: string, mount: CgroupMount): void => {
    const known = mounts.get(controller);
    if (known === undefined || known.folder === mount.folder) mounts.set(controller, mount);
  };
  for (const line of linesOf(text)) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root, folder] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    if (root === undefined || folder === undefined || line.length > 3 * pathCharsMax) continue;
    const mount = { root: unescaped(root), folder: unescaped(folder) };
    if (type === "cgroup2") add("", mount);
    if (type !== "cgroup") continue;
    for (const option of options.split(",")) if (option !== "") add(option, mount);
  }
  return mounts;
}

/** Spaces and the like are written as three octal digits. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits) => String.fromCharCode(Number(`0o${digits}`)));
}

function foldersWithin({ root, folder }: CgroupMount, path: string): CgroupFolders {
  const base = folder === "/" ? "" : folder;
  const folders: string[] = [];
  const names = namesBelow(root, path);
  for (let count = names.length; count >= 0 && folders.length < cgroupDepthMax; count -= 1) {
    folders.push([base, ...names.slice(0, count)].join("/"));
  }
  return folders;
}

/** The names that lead from a root to a path; none where it does not lie there. */
function namesBelow(root: string, path: string): readonly string[] {
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!path.startsWith(prefix)) return [];
  const names = path.slice(prefix.length).split("/");
  return names.some((name) => name === "" || name === "." || name === "..") ? [] : names;
}
