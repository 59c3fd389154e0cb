import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileCharsMax, type PolicyText } from "../policy/parse.js";

/** The texts of a policy, or why there are none. */
export type ReadPolicy =
  | {
      readonly kind: "sources";
      readonly sources: readonly PolicyText[];
      /** Hash of the contents in name order: the same texts have the same version everywhere. */
      readonly version: string;
    }
  | { readonly kind: "unreadable"; readonly message: string };

/** The most files of one policy directory. */
export const policyFilesMax = 1_000;

/** The largest policy file in bytes: the longest text the parser takes, at three bytes each. */
export const policyFileBytesMax = 3 * fileCharsMax;

/** The characters of a version. */
const versionCharsCount = 12;

/**
 * Reads a policy file, or the `*.yaml` and `*.yml` files of a directory in name order. Dot files
 * are left out: Kubernetes keeps its own bookkeeping in them.
 */
export async function readPolicyFiles(path: string): Promise<ReadPolicy> {
  try {
    const isDirectory = (await stat(path)).isDirectory();
    const files = isDirectory ? await listFiles(path) : [path];
    if (files.length === 0) return unreadable(`there is no *.yaml or *.yml file in ${path}`);
    if (files.length > policyFilesMax) {
      return unreadable(`there are more than ${policyFilesMax} policy files in ${path}`);
    }
    const sources: PolicyText[] = [];
    for (const file of files) {
      if ((await stat(file)).size > policyFileBytesMax) {
        return unreadable(`${file} is larger than ${policyFileBytesMax} bytes`);
      }
      sources.push({ file, text: await readFile(file, "utf8") });
    }
    return { kind: "sources", sources, version: versionOf(sources) };
  } catch (error) {
    return unreadable(`${path} cannot be read: ${readErrorWords(error)}`);
  }
}

/** Why a path cannot be read, in words. */
export function readErrorWords(error: unknown): string {
  const code: unknown = Reflect.get(Object(error), "code");
  if (code === "ENOENT") return "no such file or directory";
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "EISDIR") return "it is a directory";
  return typeof code === "string" ? code : "unknown reason";
}

async function listFiles(directory: string): Promise<readonly string[]> {
  const names = (await readdir(directory)).filter(
    (name) => !name.startsWith(".") && /\.ya?ml$/.test(name),
  );
  const files: string[] = [];
  for (const name of names.sort()) {
    const path = join(directory, name);
    if ((await stat(path)).isFile()) files.push(path);
  }
  return files;
}

function versionOf(sources: readonly PolicyText[]): string {
  const hash = createHash("sha256");
  for (const { file, text } of sources) {
    const name = sources.length === 1 ? "" : basename(file);
    hash.update(`${name.length}:${name}${text.length}:`).update(text);
  }
  return hash.digest("hex").slice(0, versionCharsCount);
}

function unreadable(message: string): ReadPolicy {
  return { kind: "unreadable", message };
}
