import type { MinorVersion } from "../generate/base/generator.js";

/** Reads `1.40.0`; undefined where it is no version. */
export function parseEnvoyVersion(text: string | undefined): MinorVersion | undefined {
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})(?:\.|-|$)/.exec(text ?? "") ?? [];
  if (major === undefined || minor === undefined) return undefined;
  return { major: Number(major), minor: Number(minor) };
}
