import { rated } from "../../base/generate-problems.js";
import type { GenerateProblem, MinorVersion } from "../../base/generator.js";
import type { EnvoyContext } from "./context.js";

/** A product that brings its own Envoy along, which is then chosen by the product's version. */
export interface EnvoyBundler {
  /** The flag that chooses the product's version. */
  readonly flag: "--istio-version" | "--gateway-version";
  /** By how many minor versions its Envoy is ahead of it. */
  readonly minorsAhead: number;
}

/** The Envoy that a version of the product brings. */
export function broughtEnvoy({ minorsAhead }: EnvoyBundler, { minor }: MinorVersion): MinorVersion {
  return { major: 1, minor: minor + minorsAhead };
}

/**
 * Takes problems of what is made for the Envoy, each once however often its service is looked at,
 * with hints that name the product's version and not the Envoy's.
 */
export function reportOnce(
  { flag, minorsAhead }: EnvoyBundler,
  problems: GenerateProblem[],
): EnvoyContext["report"] {
  const seen = new Set<string>();
  return (problem) => {
    const hint = problem.hint.replace(
      /--envoy-version 1\.(\d+)/,
      (_, minor: string) => `${flag} 1.${Number(minor) - minorsAhead}`,
    );
    const reported = { ...rated(problem), hint };
    const identity = JSON.stringify(reported);
    if (!seen.has(identity)) problems.push(reported);
    seen.add(identity);
  };
}
