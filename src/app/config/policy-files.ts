import { createHash } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { PolicyText } from "../../policy/parse.js";
import { fileCharsMax } from "../../policy/policy-size.js";
import { isPageFile } from "../../policy/waiting-rooms/page-file.js";

/** The texts of a policy, or the reason why there are none. */
export type ReadPolicy =
  | {
      readonly kind: "sources";
      readonly sources: readonly PolicyText[];
      /** Hash of the contents in order of names: equal texts have equal versions everywhere. */
      readonly version: string;
    }
  | UnreadablePolicy;

/** Reason why there are no texts. */
interface UnreadablePolicy {
  readonly kind: "unreadable";
  readonly message: string;
}

/** Which files of a directory form the policy. Names that begin with two dots never do. */
export type PolicyFileStyle =
  /** Its `*.yaml` and `*.yml` files, and `*.html` for pages, without dot files. */
  | "yamlFiles"
  /** All files in it and below it, including dot files, as envoyproxy/ratelimit reads them. */
  | "allFiles"
  /** The same without dot files and the contents of dot directories. */
  | "allButDotFiles";

/** Maximum number of files in a policy directory. */
export const policyFilesMax = 1_000;

/** Maximum size of a policy file in bytes: the parser's maximum length, at three bytes each. */
export const policyFileBytesMax = 3 * fileCharsMax;

/** Maximum depth of nested directories. */
export const policyDirectoriesMax = 16;

/** Number of characters of a version. */
const versionCharsCount = 12;

/** Reads a policy file, or the files of a directory in the order of their paths. */
export async function readPolicyFiles(
  path: string,
  style: PolicyFileStyle = "yamlFiles",
): Promise<ReadPolicy> {
  try {
    const isDirectory = (await stat(path)).isDirectory();
    const files = isDirectory ? await listFiles(path, style) : [path];
    if (files.every(isPageFile) && isDirectory) {
      const what = style === "yamlFiles" ? "*.yaml or *.yml file" : "policy file";
      return unreadable(`there is no ${what} in ${path}`);
    }
    if (files.length > policyFilesMax) {
      return unreadable(`there are more than ${policyFilesMax} policy files in ${path}`);
    }
    const sources: PolicyText[] = [];
    for (const file of files) {
      const read = await readPolicyFile(file);
      if (read.kind === "unreadable") return read;
      sources.push(read.source);
    }
    return { kind: "sources", sources, version: policyVersion(sources) };
  } catch (error) {
    return unreadable(`${path} cannot be read: ${readErrorWords(error)}`);
  }
}

/** A path that the caller has opened for this process, like a shell's `<(...)`. May be a pipe. */
const handedOver = /^\/dev\/(?:fd\/|stdin$)/;

/**
 * Opens a file without waiting. A pipe without a writer would block a thread for ever, and reloads
 * and the end of the process wait for that thread.
 */
async function readPolicyFile(
  file: string,
): Promise<{ readonly kind: "read"; readonly source: PolicyText } | UnreadablePolicy> {
  const isHandedOver = handedOver.test(file);
  const flags = constants.O_RDONLY | (isHandedOver ? 0 : constants.O_NONBLOCK);
  const handle = await open(file, flags);
  try {
    const found = await handle.stat();
    if (!found.isFile() && !isHandedOver) {
      return unreadable(`${file} is not a regular file, but a pipe, a socket or a device`);
    }
    if (found.size > policyFileBytesMax) {
      return unreadable(`${file} is larger than ${policyFileBytesMax} bytes`);
    }
    return { kind: "read", source: { file, text: await handle.readFile("utf8") } };
  } finally {
    await handle.close();
  }
}

/** Returns the reason why a path cannot be read, in words. */
export function readErrorWords(error: unknown): string {
  const code: unknown = Reflect.get(Object(error), "code");
  if (code === "ENOENT") return "no such file or directory";
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "EISDIR") return "it is a directory";
  if (code === "ENOTDIR") return "a part of the path is not a directory";
  if (code === "EROFS") return "the file system is read-only";
  if (code === "ENOSPC") return "no space is left";
  if (isDescriptorShortage(error)) {
    return "too many files and connections are open: raise the limit of file descriptors";
  }
  if (code === "ENXIO") return "it is a pipe, or a socket without a listener";
  return typeof code === "string" ? code : "unknown reason";
}

/**
 * Reports whether a failure is caused by a lack of file descriptors, of this process or of the
 * system. If a thread could not start for that reason, only the text of its error shows it.
 */
export function isDescriptorShortage(error: unknown): boolean {
  const code: unknown = Reflect.get(Object(error), "code");
  if (code === "ERR_WORKER_INIT_FAILED") return /\bE[MN]FILE\b/.test(String(error));
  return code === "EMFILE" || code === "ENFILE";
}

async function listFiles(root: string, style: PolicyFileStyle): Promise<readonly string[]> {
  const files: string[] = [];
  const waiting = [{ directory: root, depth: 1 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { directory, depth } = next;
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (!isWanted(entry, style)) continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) {
        if (style !== "yamlFiles" && depth < policyDirectoriesMax) {
          waiting.push({ directory: path, depth: depth + 1 });
        }
      } else if (await isFile(path)) files.push(path);
      if (files.length > policyFilesMax) return files;
    }
  }
  return files.sort();
}

function isWanted({ name }: Dirent, style: PolicyFileStyle): boolean {
  // Kubernetes keeps each version of a ConfigMap in a directory beside the links to it.
  if (name.startsWith("..")) return false;
  if (name.startsWith(".")) return style === "allFiles";
  return style !== "yamlFiles" || /\.ya?ml$/.test(name) || isPageFile(name);
}

/** Reports whether an entry is a file. A link counts as its target; a dangling one is left out. */
async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (Reflect.get(Object(error), "code") === "ENOENT") return false;
    throw error;
  }
}

/** Returns a short hash of texts in that order: equal texts have equal versions everywhere. */
export function policyVersion(sources: readonly PolicyText[]): string {
  const hash = createHash("sha256");
  for (const { file, text } of sources) {
    const name = sources.length === 1 ? "" : basename(file);
    hash.update(`${name.length}:${name}${text.length}:`).update(text);
  }
  return hash.digest("hex").slice(0, versionCharsCount);
}

function unreadable(message: string): UnreadablePolicy {
  return { kind: "unreadable", message };
}
