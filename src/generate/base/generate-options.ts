import type { GenerateOptions, ImageName, MinorVersion } from "./generator.js";

/** What holds where a person chooses nothing. */
export const defaultGenerateOptions: GenerateOptions = {
  envoyVersion: { major: 1, minor: 40 },
  istioVersion: { major: 1, minor: 30 },
  gatewayVersion: { major: 1, minor: 6 },
  form: "bootstrap",
  roles: ["sidecar", "edge"],
  namespace: "headgate",
  replicas: 2,
  withoutClientCertificates: false,
  existing: [],
};

/** Versions of one program that can be generated for. */
interface VersionRange {
  readonly min: MinorVersion;
  /** The newest that is known; what newer ones have is not used. */
  readonly max: MinorVersion;
}

/** Which versions can be generated for. */
export const versionRanges: Readonly<
  Record<"envoyVersion" | "istioVersion" | "gatewayVersion", VersionRange>
> = {
  envoyVersion: { min: { major: 1, minor: 30 }, max: { major: 1, minor: 40 } },
  istioVersion: { min: { major: 1, minor: 22 }, max: { major: 1, minor: 31 } },
  gatewayVersion: { min: { major: 1, minor: 2 }, max: { major: 1, minor: 9 } },
};

/** Most replicas of Headgate. */
export const replicasMax = 1_000;

/** Longest name of a namespace. Source: Kubernetes, DNS label names. */
const namespaceCharsMax = 63;

/**
 * Reads `1.40`, `v1.40` or `1.40.2`; undefined where it is not a version, or not one of the range.
 */
export function parseMinorVersion(
  text: string,
  { min, max }: VersionRange,
): MinorVersion | undefined {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,6})?$/.exec(text) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  const version = { major: Number(major), minor: Number(minor) };
  return isAtLeastVersion(version, min) && isAtLeastVersion(max, version) ? version : undefined;
}

/** A version as people write it: `1.40`. */
export function formatMinorVersion({ major, minor }: MinorVersion): string {
  return `${major}.${minor}`;
}

/** Whether a version is that one or a later one. */
export function isAtLeastVersion(version: MinorVersion, least: MinorVersion): boolean {
  return (
    version.major > least.major || (version.major === least.major && version.minor >= least.minor)
  );
}

/** Whether a text names a namespace of Kubernetes. */
export function isNamespace(text: string): boolean {
  return text.length <= namespaceCharsMax && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text);
}

const imagePattern = new RegExp(
  [
    "^([a-z0-9](?:[-a-zA-Z0-9._/]|:[0-9]+/){0,254}?)",
    "(?::([A-Za-z0-9_][-A-Za-z0-9._]{0,127}))?",
    "(?:@(sha256:[0-9a-f]{64}))?$",
  ].join(""),
);

/** Reads `registry.example/headgate:1.2.3`, `...@sha256:...` or both; undefined for others. */
export function parseImageName(text: string): ImageName | undefined {
  const [, repository, tag, digest] = imagePattern.exec(text) ?? [];
  if (repository === undefined || (tag === undefined && digest === undefined)) return undefined;
  return { repository, ...(tag && { tag }), ...(digest && { digest }) };
}
