import type { PolicyText } from "../../policy/parse.js";
import { baseName, isPageFile, pageFilePattern } from "../../policy/waiting-rooms/page-file.js";

/** Maximum length of a ConfigMap's key, in characters. Source: Kubernetes, ConfigMap, `data`. */
const fileNameCharsMax = 253;

/** Maximum size of a ConfigMap, in bytes. Source: Kubernetes, "ConfigMaps". */
export const configMapBytesMax = 1_048_576;

/** Returns the policy's texts by names that a ConfigMap accepts and Headgate reads. */
export function policyFiles(texts: readonly PolicyText[]): Readonly<Record<string, string>> {
  const files = new Map<string, string>();
  for (const { file, text } of texts) {
    if (isPageFile(file)) {
      // Rooms cannot refer to a page with any other name.
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

/** Returns the size of the files in a ConfigMap, in bytes. */
export function configMapBytes(files: Readonly<Record<string, string>>): number {
  const encoder = new TextEncoder();
  const texts = Object.entries(files).flat();
  return texts.reduce((sum, text) => sum + encoder.encode(text).length, 0);
}

/** Converts the last part of a path to a name: `policies/Shop 1.yml` becomes `Shop-1.yml`. */
function fileName(file: string): string {
  const plain = baseName(file)
    .replaceAll(/[^-._A-Za-z0-9]/g, "-")
    .replace(/^\.+/, "");
  const isYaml = /.\.ya?ml$/.test(plain);
  const named = isYaml ? plain : `${plain === "" ? "policy" : plain}.yaml`;
  return named.slice(-fileNameCharsMax);
}
