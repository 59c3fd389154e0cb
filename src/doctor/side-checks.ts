import {
  formatMinorVersion,
  isAtLeastVersion,
  versionRanges,
} from "../generate/base/generate-options.js";
import type { MinorVersion } from "../generate/base/generator.js";
import { visibleText } from "../policy/problems/problem.js";
import { type Diagnostic, type DoctorCheck, findingsOr } from "./diagnostic.js";
import { shownName } from "./json-access.js";

/** Maximum difference between two clocks. The times read have whole seconds. */
const clockDifferenceMsMax = 2_000;

/** Checks versions and clocks of both sides. */
export const checkSides: DoctorCheck = (input) => {
  const { envoyVersion, headgate, ownVersion } = input;
  const diagnostics: Diagnostic[] = [judgeEnvoy(envoyVersion)];
  const { version } = headgate ?? {};
  if (version !== undefined) {
    const seen = `Headgate ${shownName(version)}, and this program is ${ownVersion}`;
    diagnostics.push(
      version === ownVersion
        ? { kind: "pass", id: "HG560", seen }
        : { kind: "finding", id: "HG560", severity: "warning", seen },
    );
  }
  return [...diagnostics, ...judgeClocks(input), ...judgeFields(input)];
};

const judgeFields: DoctorCheck = ({ deprecated }) => {
  if (deprecated === undefined) return [];
  const findings = deprecated.map(({ what, where }): Diagnostic => {
    const seen = visibleText(`${what}, at ${where}`);
    return { kind: "finding", id: "HG562", severity: "warning", seen };
  });
  return findingsOr(findings, { id: "HG562", seen: "no deprecated field" });
};

/** Judges whether an Envoy of this version is known to work. */
export function judgeEnvoy(text: string | undefined): Diagnostic {
  const id = "HG560";
  const version = parseEnvoyVersion(text);
  if (text === undefined || version === undefined) {
    return { kind: "unseen", id, seen: "Envoy's version: unknown" };
  }
  const { min, max } = versionRanges.envoyVersion;
  const range = `${formatMinorVersion(min)} to ${formatMinorVersion(max)}`;
  const isOld = !isAtLeastVersion(version, min);
  const seen = `Envoy ${shownName(text)}; tested: ${range}`;
  return isOld ? { kind: "finding", id, severity: "warning", seen } : { kind: "pass", id, seen };
}

const judgeClocks: DoctorCheck = ({ clocks: { envoy, headgate } }) => {
  const id = "HG561";
  if (envoy === undefined || headgate === undefined) {
    return [{ kind: "unseen", id, seen: "clocks: both sides must answer" }];
  }
  const apartMs = Math.abs(envoy.aheadMs - headgate.aheadMs);
  const errorMs = envoy.errorMs + headgate.errorMs;
  const ahead = envoy.aheadMs > headgate.aheadMs ? "Envoy" : "Headgate";
  if (apartMs - errorMs <= clockDifferenceMsMax) {
    return [{ kind: "pass", id, seen: "clocks agree to a second" }];
  }
  const seen = `${ahead}'s clock is ${(apartMs / 1_000).toFixed(1)} s ahead`;
  return [{ kind: "finding", id, severity: "warning", seen }];
};

/** Reads `1.40.0`; undefined if it is not a version. */
export function parseEnvoyVersion(text: string | undefined): MinorVersion | undefined {
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})(?:\.|-|$)/.exec(text ?? "") ?? [];
  if (major === undefined || minor === undefined) return undefined;
  return { major: Number(major), minor: Number(minor) };
}
