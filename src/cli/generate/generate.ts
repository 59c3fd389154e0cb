import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { readEnvoyImage } from "../../app/config/envoy-image.js";
import { policyVersion, readErrorWords } from "../../app/config/policy-files.js";
import { readObjectSchemas } from "../../app/policy/object-schemas.js";
import { many } from "../../core/base/many.js";
import { kustomizationFile } from "../../generate/base/custom-object.js";
import type { Document } from "../../generate/base/document.js";
import {
  type ExistingObject,
  type ExistingProblem,
  readExisting,
} from "../../generate/base/existing-object.js";
import type { GeneratedPolicy, GenerateOptions } from "../../generate/base/generator.js";
import { isPlainMap, mapIn, plainTree } from "../../generate/base/plain-tree.js";
import { renderDocument, ScalarTexts } from "../../generate/base/render.js";
import { envoyCheck } from "../../generate/check/check-documents.js";
import { hasObjects, objectCheck } from "../../generate/check/check-objects.js";
import { EnvoyApi } from "../../generate/check/envoy-api.js";
import { type DocumentCheck, generate } from "../../generate/generate.js";
import { generatedPolicy } from "../../generate/generated-policy.js";
import { titleOf } from "../../generate/merge/merge-into.js";
import { type Target, targetNames } from "../../generate/targets.js";
import { parsePolicy } from "../../policy/parse.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import { isPageFile } from "../../policy/waiting-rooms/page-file.js";
import { envoyTool } from "../../programs/install.js";
import { lookUp, thisMachine } from "../../programs/provision.js";
import { readPolicyTexts } from "../input/policy-texts.js";
import { reportFormatOption } from "../input/report-format.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addGenerateFlags, type GenerateFlags, readGenerateOptions } from "./generate-flags.js";
import { listName, planFolder, renderList, type WantedFile } from "./generated-folder.js";
import {
  formatLocated,
  formatStale,
  type LocatedProblem,
  locateProblems,
} from "./located-problems.js";
import { verifyWithEnvoy } from "./verify-envoy.js";
import { verifyObjects } from "./verify-objects.js";
import { writeFolder } from "./write-folder.js";

/** Adds `headgate generate`, which generates and checks configuration from a policy. */
export function addGenerate(program: Command, context: CommandContext): void {
  const command = program
    .command("generate")
    .description("generate configuration for proxies, meshes and clusters from a policy")
    .argument("<TARGET>", `the target: ${targetNames.join(", ")}`)
    .argument("<POLICY...>", "files, or directories of *.yaml and *.yml files");
  addGenerateFlags(command);
  command
    .addOption(reportFormatOption(["text", "json"]))
    .addHelpText("before", examplesText)
    .addHelpText("after", helpText)
    .action(async (target: string, paths: readonly string[], flags: GenerateFlags) => {
      const isGiven = (flag: string): boolean => command.getOptionValueSource(flag) === "cli";
      const read = readGenerateOptions(target, flags, isGiven);
      if (read.kind === "problem") return command.error(`error: ${read.message}`);
      const run = { ...read.value, flags, paths, context };
      context.exitWith(await runGenerate(run));
    });
}

const examplesText = `Examples:
  headgate generate envoy policy.yaml --out envoy/
  headgate generate envoy policy.yaml --role edge --verify
  headgate generate istio policy.yaml --namespace shop --out istio/
  headgate generate kubernetes policy.yaml --out k8s/ --check
  headgate generate istio policy.yaml --with vs.yaml,rules.yaml --out istio/
  headgate generate gateway policy.yaml | kubectl apply --server-side -f -
`;

const helpText =
  "\nHeadgate checks everything before it writes: against Envoy's API and its validation " +
  "rules (also in\npatches), against the schemas of Kubernetes, Istio and Envoy Gateway, " +
  "and for mistakes that Envoy\nwould accept. If there is an error, it writes " +
  "nothing.\n\nFiles are written to the folder of --out together or not at all. A file " +
  "that was not generated, or\nwas changed since, is kept unless you set --force. Files " +
  "that are no longer generated are removed.\nThe folder's .headgate-TARGET.sha256 lists " +
  "the generated files.\n\nIstio and Envoy Gateway use one object of a kind for each host " +
  "or target. With --with, settings are\nmerged into your own objects: DestinationRule, " +
  "Sidecar and the HTTP routes of VirtualServices; and\nBackendTrafficPolicy, " +
  "ClientTrafficPolicy and EnvoyExtensionPolicy. Your settings win, and comments\nare not " +
  "kept. If the policy differs, you get a warning. Objects without new settings are not " +
  "printed.\n\nApply objects with `kubectl apply --server-side`: without it, objects of " +
  "more than 262,144 bytes\nare refused. A cluster accepts at most 1.5 MiB; a larger " +
  "object is an error.\n\nExit codes: 0 ok, 1 failure, 2 usage, 3 invalid, 4 files of " +
  "--check are stale.";

/** Other ways to apply objects also store them in an annotation, of at most 256 KiB. */
const applyText = "Apply objects with `kubectl apply --server-side`.";

/** Inputs for one run of the command. */
interface Run {
  readonly target: Target;
  readonly options: GenerateOptions;
  readonly flags: GenerateFlags;
  readonly paths: readonly string[];
  readonly context: CommandContext;
}

/** A valid policy, and checked documents. */
interface Made {
  readonly run: Run;
  readonly policy: GeneratedPolicy;
  readonly documents: readonly Document[];
  readonly files: readonly WantedFile[];
  readonly problems: readonly LocatedProblem[];
  /** Objects of --with that get no settings. */
  readonly leftOut: readonly string[];
}

async function runGenerate(run: Run): Promise<number> {
  const { paths, target, options, context } = run;
  const { sources: texts } = await readPolicyTexts(paths);
  const parsed = parsePolicy(texts);
  if (parsed.kind === "problems") return refusePolicy(run, parsed);
  const policy = generatedPolicy(parsed, { texts, hashOf: policyVersion });
  const read = await readObjects(run.flags.with ?? []);
  if (read.kind === "problems") {
    const { problems } = read;
    return refuseMade({ run, policy, documents: [], files: [], problems, leftOut: [] });
  }
  const existing = read.objects;
  const wish = { target, policy, options: { ...options, existing } };
  const { documents, problems: found } = generate(
    wish,
    await documentChecks(target, context.envoyApi),
  );
  const problems = locateProblems(found, parsed.places);
  const scalars = new ScalarTexts();
  const files = documents.map((document) => {
    return { path: document.path, text: renderDocument(document, { target, policy }, scalars) };
  });
  const notMerged = leftOut(existing, documents);
  const made: Made = { run, policy, documents, files, problems, leftOut: notMerged };
  if (problems.some(({ severity }) => severity === "error")) return refuseMade(made);
  const verified = await verify(made);
  return verified === exitCodes.ok ? handOut(made) : verified;
}

function failed(message: string): CommandFailure {
  return new CommandFailure(exitCodes.failure, message);
}

function refusePolicy(run: Run, parsed: ParseProblems): number {
  const { output } = run.context;
  if (run.flags.output === "json") {
    const { problems, unreportedCount } = parsed;
    output.out(JSON.stringify({ ok: false, problems, unreportedCount, files: [] }, undefined, 2));
  } else {
    output.err(`${formatProblems(parsed)}

The policy is invalid; nothing was written.`);
  }
  return exitCodes.invalidPolicy;
}

function refuseMade(made: Made): number {
  const { output } = made.run.context;
  if (made.run.flags.output === "json") output.out(asJson(made, { ok: false, files: [] }));
  else output.err(`${formatLocated(made.problems)}\n\nNothing was written.`);
  return exitCodes.invalidPolicy;
}

/** Returns the exit code of a verification: ok without --verify, failure if it is impossible. */
async function verify({ run, documents }: Made): Promise<number> {
  if (run.flags.verify !== true) return exitCodes.ok;
  const { output, env } = run.context;
  const objects = await verifyObjects(run.target, documents, env["PATH"] ?? "");
  if (objects?.kind === "missing") {
    return failUnverified(run, `${objects.command} is not on PATH. Install it`);
  }
  if (objects?.kind === "asked") {
    const { command, refusal, leavesOut } = objects;
    const words = leavesOut === undefined ? "" : `, by schemas only: ${leavesOut}`;
    if (refusal === undefined) output.err(`Verified by ${command}${words}.`);
    else output.err(`${command} rejects it: ${visibleLines(refusal)}\nNothing was written.`);
    return refusal === undefined ? exitCodes.ok : exitCodes.invalidPolicy;
  }
  const envoy = await lookUp(envoyTool, thisMachine());
  if (envoy.kind === "missing") {
    const remedy = "Put envoy on PATH, name one in ENVOY_BIN";
    return failUnverified(
      run,
      `${envoy.why}. ${remedy}, run \`headgate demo\` once to install one`,
    );
  }
  const verdicts = await verifyWithEnvoy(documents, envoy);
  if (verdicts.length === 0) {
    const remedy = "Make one with `generate envoy --form bootstrap`";
    return failUnverified(run, `there is no complete configuration. ${remedy}`);
  }
  const refused = verdicts.filter(({ refusal }) => refusal !== undefined);
  for (const { path, refusal } of refused) {
    output.err(`${path}: Envoy ${envoy.version} rejects it: ${visibleLines(refusal ?? "")}`);
  }
  if (refused.length > 0) output.err("Nothing was written.");
  else output.err(`Verified by Envoy ${envoy.version}: ${many(verdicts.length, "configuration")}.`);
  return refused.length === 0 ? exitCodes.ok : exitCodes.invalidPolicy;
}

/** Fails if --verify is impossible, so that users do not take the output for verified. */
function failUnverified({ context }: Run, why: string): number {
  context.output.err(`Not verified: ${why}, or leave out --verify. Nothing was written.`);
  return exitCodes.failure;
}

function visibleLines(text: string): string {
  return text.split("\n").map(visibleText).join("\n");
}

/** Writes the output to a folder or standard output, or only compares it. */
async function handOut(made: Made): Promise<number> {
  const { run, files, problems } = made;
  const { flags, context } = run;
  const isJson = flags.output === "json";
  if (!isJson && made.leftOut.length > 0) context.output.err(formatLeftOut(made.leftOut));
  if (!isJson && problems.length > 0) context.output.err(formatLocated(problems));
  if (flags.out !== undefined) return handOutToFolder(made, flags.out);
  if (isJson) {
    context.output.out(asJson(made, { ok: true, files }));
    return exitCodes.ok;
  }
  if (files.length > 1 && made.documents.some(({ kind }) => kind.format !== "yaml")) {
    throw failed(`${files.length} files of several kinds need a folder: set --out`);
  }
  // `kubectl apply -f -` reads objects from standard input, but a kustomization names files.
  const objects = files.filter(({ path }) => path !== kustomizationFile);
  const texts = objects.map(({ path, text }) =>
    objects.length > 1 ? `# File: ${path}\n${text}` : text,
  );
  context.output.out(texts.join("---\n"));
  return exitCodes.ok;
}

async function handOutToFolder(made: Made, folder: string): Promise<number> {
  const { run, files } = made;
  const { target, flags, context } = run;
  const { steps, foreign, blocked } = await planFolder(folder, target, files);
  const isStale = steps.some(({ kind }) => kind !== "keep") || blocked.length > 0;
  if (flags.check === true) {
    if (flags.output === "json") {
      context.output.out(asJson(made, { ok: !isStale, files: stepsAsJson(steps), blocked }));
    } else if (isStale) {
      const words = [formatStale(steps), ...[...blocked, ...foreign].map(visibleText)];
      const again = foreign.length > 0 ? ", and with --force" : "";
      const reported = words.filter((text) => text !== "").join("\n");
      context.output.out(`${reported}\n\nRun it again without --check${again}.`);
    }
    return isStale ? exitCodes.stale : exitCodes.ok;
  }
  const stopped = flags.force === true ? blocked : [...blocked, ...foreign];
  if (stopped.length > 0) {
    const hint = blocked.length > 0 ? "" : " Use --force to overwrite.";
    throw failed(`${stopped.map(visibleText).join("; ")}. Nothing was written.${hint}`);
  }
  try {
    await writeFolder(folder, { steps, list: { name: listName(target), text: renderList(files) } });
  } catch (error) {
    const why = readErrorWords(error);
    throw failed(`${visibleText(folder)} cannot be written: ${why}. Nothing was written.`);
  }
  if (flags.output === "json") {
    context.output.out(asJson(made, { ok: true, files: stepsAsJson(steps) }));
  } else {
    context.output.err(`${countSteps(steps)} in ${visibleText(folder)}.`);
    if (made.documents.some(hasObjects)) context.output.err(applyText);
  }
  return exitCodes.ok;
}

/** Maximum number of named objects that get no settings. */
const namedMax = 10;

function formatLeftOut(titles: readonly string[]): string {
  const named = titles.slice(0, namedMax).map(visibleText).join(", ");
  const more = titles.length > namedMax ? `, and ${titles.length - namedMax} more` : "";
  return `Not printed, because they get no settings of the policy: ${named}${more}.`;
}

function asJson({ policy, run, problems, leftOut: titles }: Made, result: object): string {
  const { name, hash } = policy;
  const others = run.flags.with === undefined ? {} : { leftOut: titles };
  const made = { target: run.target, policy: name, hash, ...others };
  return JSON.stringify({ ...made, ...result, problems }, undefined, 2);
}

function stepsAsJson(steps: readonly { readonly kind: string; readonly path: string }[]): object[] {
  return steps.map(({ kind, path }) => ({ path, step: kind }));
}

function countSteps(steps: readonly { readonly kind: string }[]): string {
  const count = (kind: string): number => steps.filter((step) => step.kind === kind).length;
  return (
    `${many(count("add"), "file")} added, ${count("change")} changed, ` +
    `${count("remove")} removed, ${count("keep")} unchanged`
  );
}

/** Objects from the files of `--with`, or the problems with them. */
type ReadObjects =
  | { readonly kind: "read"; readonly objects: readonly ExistingObject[] }
  | { readonly kind: "problems"; readonly problems: readonly LocatedProblem[] };

/** Reads files of objects, or all YAML files of folders. Reads each file once. */
async function readObjects(paths: readonly string[]): Promise<ReadObjects> {
  const { sources } = await readPolicyTexts(paths);
  const { objects, problems } = readExisting(sources.filter(({ file }) => !isPageFile(file)));
  if (problems.length === 0) return { kind: "read", objects };
  return { kind: "problems", problems: problems.map(located) };
}

function located({ expected, suggestion: _none, ...problem }: ExistingProblem): LocatedProblem {
  const hint = expected ?? "pass Kubernetes objects, in YAML";
  return { ...problem, hint, severity: "error", service: undefined, path: [] };
}

/** Returns titles of the user's objects that get no settings and are not printed. */
export function leftOut(
  objects: readonly ExistingObject[],
  documents: readonly Document[],
): readonly string[] {
  const made = new Set(documents.filter(hasObjects).flatMap(({ parts }) => parts.map(keyOfPart)));
  return objects.filter((one) => !made.has(titleOf(one))).map(titleOf);
}

function keyOfPart(part: Document["parts"][number]): string {
  const plain = plainTree(part);
  if (!isPlainMap(plain)) return "";
  const { name, namespace } = mapIn(plain, "metadata");
  return `${String(plain["kind"])} ${String(namespace)}/${String(name)}`;
}

/**
 * Returns the checks of a target's documents before output. Schemas are loaded only if there is
 * something to check, so that an invalid policy is refused without delay.
 *
 * @param api Envoy's API. Default: read from the installation
 */
async function documentChecks(target: Target, api?: EnvoyApi): Promise<readonly DocumentCheck[]> {
  const envoy: DocumentCheck = (documents, options) =>
    envoyCheck(api ?? new EnvoyApi(readEnvoyImage()))(documents, options);
  // Bootstraps contain no objects, and the validator takes time to load.
  if (target === "envoy") return [envoy];
  const { ObjectSchemas } = await import("../../generate/check/object-schemas.js");
  const objects: DocumentCheck = (documents, options) =>
    objectCheck(new ObjectSchemas(readObjectSchemas()))(documents, options);
  return [envoy, objects];
}
