import type { GenerateOptions, ImageName, MinorVersion } from "./generator.js";

/** Default options. */
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

/** Range of versions of one program that can be generated for. */
interface VersionRange {
  readonly min: MinorVersion;
  /** Newest known version. Features of later versions are not used. */
  readonly max: MinorVersion;
}

/** Versions that can be generated for. */
export const versionRanges: Readonly<
  Record<"envoyVersion" | "istioVersion" | "gatewayVersion", VersionRange>
> = {
  envoyVersion: { min: { major: 1, minor: 30 }, max: { major: 1, minor: 40 } },
  istioVersion: { min: { major: 1, minor: 22 }, max: { major: 1, minor: 31 } },
  gatewayVersion: { min: { major: 1, minor: 2 }, max: { major: 1, minor: 9 } },
};

/** Maximum number of Headgate replicas. */
export const replicasMax = 1_000;

/** Maximum length of a namespace's name. Source: Kubernetes, DNS label names. */
const namespaceCharsMax = 63;

/** Parses `1.40`, `v1.40` or `1.40.2`. Returns undefined if it is no version, or out of range. */
export function parseMinorVersion(
  text: string,
  { min, max }: VersionRange,
): MinorVersion | undefined {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,6})?$/.exec(text) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  const version = { major: Number(major), minor: Number(minor) };
  return isAtLeastVersion(version, min) && isAtLeastVersion(max, version) ? version : undefined;
}

/** Formats a version as people write it: `1.40`. */
export function formatMinorVersion({ major, minor }: MinorVersion): string {
  return `${major}.${minor}`;
}

/** Reports whether a version is at least another one. */
export function isAtLeastVersion(version: MinorVersion, least: MinorVersion): boolean {
  return (
    version.major > least.major || (version.major === least.major && version.minor >= least.minor)
  );
}

/** Reports whether a text is a valid name of a Kubernetes namespace. */
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

/** Parses `registry.example/headgate:1.2.3`, `...@sha256:...` or both; undefined for others. */
export function parseImageName(text: string): ImageName | undefined {
  const [, repository, tag, digest] = imagePattern.exec(text) ?? [];
  if (repository === undefined || (tag === undefined && digest === undefined)) return undefined;
  return { repository, ...(tag && { tag }), ...(digest && { digest }) };
}
