import { rated } from "../../base/generate-problems.js";
import type { GenerateProblem, MinorVersion } from "../../base/generator.js";
import type { EnvoyContext } from "./context.js";

/** A product that includes its own Envoy, so that the product's version determines Envoy's. */
export interface EnvoyBundler {
  /** Flag that selects the product's version. */
  readonly flag: "--istio-version" | "--gateway-version";
  /** Number of minor versions by which its Envoy is ahead of it. */
  readonly minorsAhead: number;
}

/** Returns the version of Envoy that a version of the product includes. */
export function broughtEnvoy({ minorsAhead }: EnvoyBundler, { minor }: MinorVersion): MinorVersion {
  return { major: 1, minor: minor + minorsAhead };
}

/**
 * Returns a function that collects problems of Envoy's configuration, each once even if its service
 * is processed several times. Hints name the product's version instead of Envoy's.
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
