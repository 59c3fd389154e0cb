import type { PolicyText } from "../../policy/parse.js";
import { baseName, isPageFile, pageFilePattern } from "../../policy/waiting-rooms/page-file.js";

/** Longest name of a ConfigMap's file, in characters. Source: Kubernetes, ConfigMap, `data`. */
const fileNameCharsMax = 253;

/** What a ConfigMap may hold, in bytes. Source: Kubernetes, "ConfigMaps". */
export const configMapBytesMax = 1_048_576;

/** The policy's texts under names that a ConfigMap takes and Headgate reads. */
export function policyFiles(texts: readonly PolicyText[]): Readonly<Record<string, string>> {
  const files = new Map<string, string>();
  for (const { file, text } of texts) {
    if (isPageFile(file)) {
      // Another name is one that no room can use.
      if (pageFilePattern.test(baseName(file))) files.set(baseName(file), text);
      continue;
    }
    const name = fileName(file);
    let free = name;
    for (let number = 2; files.has(free); number += 1) {
      free = name.replace(/\.ya?ml$/, (end) => `-${number}${end}`);
    }
    files.set(free, text);
  }
  return Object.fromEntries(files);
}

/** What the files take in a ConfigMap, in bytes. */
export function configMapBytes(files: Readonly<Record<string, string>>): number {
  const encoder = new TextEncoder();
  const texts = Object.entries(files).flat();
  return texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);
}

/** The last part of a path, as a name: `policies/Shop 1.yml` is `Shop-1.yml`. */
function fileName(file: string): string {
  const plain = baseName(file)
    .replaceAll(/[^-._A-Za-z0-9]/g, "-")
    .replace(/^\.+/, "");
  const isYaml = /.\.ya?ml$/.test(plain);
  const named = isYaml ? plain : `${plain === "" ? "policy" : plain}.yaml`;
  return named.slice(-fileNameCharsMax);
}
