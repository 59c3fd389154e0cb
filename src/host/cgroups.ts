import { linesOf } from "./host-texts.js";

/** Folders of the cgroups that contain a process: the innermost first, then each parent. */
export type CgroupFolders = readonly string[];

/** Folders in which the kernel reports resource use of this process's cgroups, by controller. */
export interface Cgroups {
  /** cgroup v2, which has one tree for all controllers; undefined if it is not mounted. */
  readonly unified: CgroupFolders | undefined;
  /** cgroup v1: one tree for each of these controllers that is mounted this way. */
  readonly cpu: CgroupFolders | undefined;
  readonly cpuacct: CgroupFolders | undefined;
  readonly memory: CgroupFolders | undefined;
}

/** Maximum number of nested cgroups that are read: the innermost ones. */
export const cgroupDepthMax = 16;

/** Maximum length of a cgroup's path, as of any path. */
const pathCharsMax = 4_096;

/**
 * Finds the folders of the cgroups of a process.
 *
 * A container may see its own cgroup as the root (a cgroup namespace), or it may see the host's
 * path although only its own part is mounted. Then the root of that part is cut off. If neither
 * explains the path, the cgroup of the process is not mounted here, and the mounted one is used
 * instead.
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

/** Paths by controller; "" is cgroup v2. */
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
 * Mounts by controller; "" is cgroup v2. A second mount in another folder belongs to other software
 * and is ignored. A later mount on the same folder hides the earlier one.
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

/** Decodes spaces and similar characters, which are written as three octal digits. */
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

/** Returns the folder names that lead from a root to a path; empty if it is not below the root. */
function namesBelow(root: string, path: string): readonly string[] {
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!path.startsWith(prefix)) return [];
  const names = path.slice(prefix.length).split("/");
  return names.some((name) => name === "" || name === "." || name === "..") ? [] : names;
}
