import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { policyVersion } from "../../src/app/config/policy-files.js";
import { readExisting } from "../../src/generate/base/existing-object.js";
import {
  defaultGenerateOptions,
  parseMinorVersion,
  versionRanges,
} from "../../src/generate/base/generate-options.js";
import type {
  Generated,
  GeneratedPolicy,
  GenerateOptions,
  GenerateProblem,
} from "../../src/generate/base/generator.js";
import { renderDocument } from "../../src/generate/base/render.js";
import { envoyCheck } from "../../src/generate/check/check-documents.js";
import { objectCheck } from "../../src/generate/check/check-objects.js";
import { type DocumentCheck, generate } from "../../src/generate/generate.js";
import { generatedPolicy } from "../../src/generate/generated-policy.js";
import { type Target, targetNames } from "../../src/generate/targets.js";
import { type PolicyText, parsePolicy } from "../../src/policy/parse.js";
import { formatProblems } from "../../src/policy/problems/problem.js";
import { readEnvoyApi } from "./envoy-api.js";
import { readSchemas } from "./object-schemas.js";

/** The golden cases: `<target>/<case>/policy.yaml`, `options.json`, and `expected/`. */
const root = fileURLToPath(new URL("../golden/generate", import.meta.url));
const policiesRoot = fileURLToPath(new URL("../golden/policies", import.meta.url));

/** One golden case. */
export interface GeneratedCase {
  readonly target: Target;
  /** `<target>/<folder>`. */
  readonly name: string;
  readonly folder: string;
}

/** Names in `options.json` are those of `GenerateOptions`; versions are texts such as "1.35". */
const optionsShape = z
  .strictObject({
    envoyVersion: z.string(),
    istioVersion: z.string(),
    gatewayVersion: z.string(),
    form: z.enum(["bootstrap", "fragments"]),
    roles: z.array(z.enum(["sidecar", "edge"])),
    namespace: z.string(),
    replicas: z.int(),
    withoutClientCertificates: z.boolean(),
  })
  .partial();

/** All golden cases, in the order of their names. */
export function generatedCases(): readonly GeneratedCase[] {
  return targetNames.flatMap((target) => {
    const folder = join(root, target);
    return foldersIn(folder).map((name) => {
      return { target, name: `${target}/${name}`, folder: join(folder, name) };
    });
  });
}

/** Where one of the five policies that users would write is tried. */
export const policyPlaces = ["envoy", "istio-sidecar", "istio-gateway", "gateway"] as const;

const targetOf: Readonly<Record<(typeof policyPlaces)[number], Target>> = {
  envoy: "envoy",
  "istio-sidecar": "istio",
  "istio-gateway": "istio",
  gateway: "gateway",
};

/** One of them at one place: `policies/<policy>/policy.yaml`, and a folder for each place. */
export interface PolicyCase extends GeneratedCase {
  readonly place: (typeof policyPlaces)[number];
}

/** All five, at each place. */
export function policyCases(): readonly PolicyCase[] {
  return foldersIn(policiesRoot).flatMap((policy) =>
    policyPlaces.map((place) => {
      const name = `${policy}/${place}`;
      return { place, target: targetOf[place], name, folder: join(policiesRoot, name) };
    }),
  );
}

/** Folders of golden cases that belong to no target. */
export function strayFolders(): readonly string[] {
  const known: readonly string[] = targetNames;
  return foldersIn(root).filter((name) => !known.includes(name));
}

/** The case's policy; throws, with all problems, where it is not understood. */
export function casePolicy(given: GeneratedCase): GeneratedPolicy {
  return policyOf([{ file: "policy.yaml", text: casePolicyText(given) }]);
}

/** The text of the case's policy, which may be that of several cases above them. */
export function casePolicyText({ folder }: GeneratedCase): string {
  const own = join(folder, "policy.yaml");
  return readFileSync(existsSync(own) ? own : join(folder, "..", "policy.yaml"), "utf8");
}

/** A policy's texts as generators take them; throws, with all problems, where they are wrong. */
export function policyOf(texts: readonly PolicyText[]): GeneratedPolicy {
  const parsed = parsePolicy(texts);
  if (parsed.kind === "problems") throw new Error(`a wrong policy:\n${formatProblems(parsed)}`);
  return generatedPolicy(parsed, { texts, hashOf: policyVersion });
}

/** The case's options: what is usual, but for what `options.json` says. */
export function caseOptions({ folder }: GeneratedCase): GenerateOptions {
  const file = join(folder, "options.json");
  const given = optionsShape.parse(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {});
  const { envoyVersion, istioVersion, gatewayVersion, ...others } = given;
  const version = (name: keyof typeof versionRanges, text: string | undefined) => {
    if (text === undefined) return defaultGenerateOptions[name];
    const parsed = parseMinorVersion(text, versionRanges[name]);
    if (parsed === undefined) throw new Error(`${file}: ${name} ${text} is not in range`);
    return parsed;
  };
  const { form, roles, namespace, replicas, withoutClientCertificates } = defaultGenerateOptions;
  return {
    envoyVersion: version("envoyVersion", envoyVersion),
    istioVersion: version("istioVersion", istioVersion),
    gatewayVersion: version("gatewayVersion", gatewayVersion),
    form: others.form ?? form,
    roles: others.roles ?? roles,
    namespace: others.namespace ?? namespace,
    replicas: others.replicas ?? replicas,
    withoutClientCertificates: others.withoutClientCertificates ?? withoutClientCertificates,
    existing: caseObjects(folder),
  };
}

/** What the user of a case has already: `with.yaml`. */
function caseObjects(folder: string): GenerateOptions["existing"] {
  const file = join(folder, "with.yaml");
  if (!existsSync(file)) return [];
  const read = readExisting([{ file: "with.yaml", text: readFileSync(file, "utf8") }]);
  if (read.problems.length > 0) throw new Error(`${file}: ${JSON.stringify(read.problems)}`);
  return read.objects;
}

/** All that the product looks at documents with. */
export const checks: readonly DocumentCheck[] = [
  envoyCheck(readEnvoyApi()),
  objectCheck(readSchemas()),
];

/** What a case gives now, as documents; with the problems that are found in them. */
export interface CaseOutcome extends Generated {
  readonly policy: GeneratedPolicy;
}

/** What the case gives now: texts by path; problems, if any, in `problems.txt`. */
export function renderCase(
  given: GeneratedCase,
  { policy, ...generated }: CaseOutcome = generateCase(given),
): ReadonlyMap<string, string> {
  return renderGenerated(generated, { target: given.target, policy });
}

/** @param looks what looks at the documents; default all that the product has */
export function generateCase(
  given: GeneratedCase,
  { looks = checks }: { readonly looks?: readonly DocumentCheck[] } = {},
): CaseOutcome {
  const policy = casePolicy(given);
  return {
    policy,
    ...generate({ target: given.target, policy, options: caseOptions(given) }, looks),
  };
}

function renderGenerated(
  { documents, problems }: Generated,
  origin: { readonly target: Target; readonly policy: GeneratedPolicy },
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const document of documents) {
    if (texts.has(document.path)) throw new Error(`two documents are called ${document.path}`);
    texts.set(document.path, renderDocument(document, origin));
  }
  if (problems.length > 0) texts.set("problems.txt", problems.map(renderProblem).join(""));
  return texts;
}

function renderProblem({ id, severity, spot, message, hint }: GenerateProblem): string {
  const place = [spot.service ?? "policy", ...spot.path].join(".");
  return `${place}: ${severity} ${id} ${message}\n  ${hint}\n`;
}

/** The files that a case gives: as they are kept, or else as they are made now. */
export function caseFiles(given: GeneratedCase): ReadonlyMap<string, string> {
  const isKept = existsSync(join(given.folder, "expected"));
  return isKept ? expectedFiles(given) : renderCase(given, generateCase(given, { looks: [] }));
}

/** The files of `expected`, by path with `/`. */
export function expectedFiles({ folder }: GeneratedCase): ReadonlyMap<string, string> {
  const expected = join(folder, "expected");
  if (!existsSync(expected)) return new Map();
  const entries = readdirSync(expected, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return new Map(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [relative(expected, path).split(sep).join("/"), readFileSync(path, "utf8")];
    }),
  );
}

/** Writes `expected` anew; what is no longer made is gone. */
export function writeExpected({ folder }: GeneratedCase, files: ReadonlyMap<string, string>): void {
  const expected = join(folder, "expected");
  rmSync(expected, { recursive: true, force: true });
  for (const [path, text] of files) {
    const file = join(expected, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

function foldersIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}
