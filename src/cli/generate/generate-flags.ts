import { type Command, Option } from "commander";
import type { ParsedOption } from "../../app/options/option.js";
import {
  defaultGenerateOptions,
  formatMinorVersion,
  isNamespace,
  parseImageName,
  parseMinorVersion,
  replicasMax,
  versionRanges,
} from "../../generate/base/generate-options.js";
import type { GenerateOptions, MinorVersion } from "../../generate/base/generator.js";
import { type Target, targetNames, targets } from "../../generate/targets.js";
import { findNearestName } from "../../policy/text/nearest-name.js";

/** Flags as they were typed. */
export interface GenerateFlags {
  readonly out?: string;
  readonly check?: boolean;
  readonly force?: boolean;
  readonly verify?: boolean;
  readonly envoyVersion: string;
  readonly istioVersion: string;
  readonly gatewayVersion: string;
  readonly form: GenerateOptions["form"];
  readonly role: "sidecar" | "edge" | "both";
  readonly namespace: string;
  readonly with?: readonly string[];
  readonly replicas: string;
  readonly image?: string;
  readonly withoutClientCertificates?: boolean;
  readonly runbookUrl?: string;
  readonly output: "text" | "json";
}

/** Adds the flags for the generated output and its destination. */
export function addGenerateFlags(command: Command): void {
  const defaults = defaultGenerateOptions;
  const version = (flag: string, name: keyof typeof versionRanges, of: string): Option => {
    const { min, max } = versionRanges[name];
    const range = `${formatMinorVersion(min)} to ${formatMinorVersion(max)}`;
    return new Option(
      `${flag} <VERSION>`,
      `the version to generate for, ${range} of ${of}`,
    ).default(formatMinorVersion(defaults[name]));
  };
  const options = [
    new Option("--out <DIR>", "the output folder; default: standard output"),
    new Option("--check", "compare with the folder of --out, and write nothing"),
    new Option("--force", "overwrite files that were not generated, or that were changed"),
    new Option(
      "--verify",
      "let Envoy, istioctl or egctl validate it too; it fails where they are not on PATH",
    ),
    version("--envoy-version", "envoyVersion", "Envoy"),
    version("--istio-version", "istioVersion", "Istio"),
    version("--gateway-version", "gatewayVersion", "Envoy Gateway"),
    new Option("--form <FORM>", "complete proxies, or fragments to merge into yours")
      .choices(["bootstrap", "fragments"])
      .default(defaults.form),
    new Option("--role <ROLE>", "which proxies, for envoy and istio")
      .choices(["sidecar", "edge", "both"])
      .default("both"),
    new Option(
      "--namespace <NAME>",
      "the namespace of Headgate, and of objects without one",
    ).default(defaults.namespace),
    new Option(
      "--with <FILE>",
      "your own objects (FILE,FILE; repeatable): generated settings are merged into them",
    ).argParser(addFiles),
    new Option("--replicas <COUNT>", "the number of replicas of Headgate").default(
      String(defaults.replicas),
    ),
    new Option("--image <NAME>", "the image of Headgate, with a tag or a digest (name@sha256:...)"),
    new Option(
      "--without-client-certificates",
      "accept proxies without a client certificate, for example if a mesh authenticates them",
    ),
    new Option(
      "--runbook-url <URL>",
      "the URL of the runbook, for alerts and dashboards; * stands for an alert's name",
    ),
  ];
  for (const option of options) command.addOption(option);
}

function addFiles(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").filter((file) => file !== "")];
}

/** Flags that apply only to some targets, and the option that each sets. */
const optionOfFlag = {
  envoyVersion: "envoyVersion",
  istioVersion: "istioVersion",
  gatewayVersion: "gatewayVersion",
  form: "form",
  role: "roles",
  namespace: "namespace",
  with: "existing",
  replicas: "replicas",
  image: "image",
  withoutClientCertificates: "withoutClientCertificates",
  runbookUrl: "runbookUrl",
} as const satisfies Partial<Record<keyof GenerateFlags, keyof GenerateOptions>>;

/**
 * Reads the target and its options, or returns what is wrong with the command line.
 *
 * @param isGiven reports whether a flag is on the command line
 */
export function readGenerateOptions(
  target: string,
  flags: GenerateFlags,
  isGiven: (flag: string) => boolean,
): ParsedOption<{ readonly target: Target; readonly options: GenerateOptions }> {
  const known = targetNames.find((one) => one === target);
  if (known === undefined) {
    const nearest = findNearestName(target, targetNames);
    const meant = nearest === undefined ? "" : `\n(Did you mean ${nearest}?)`;
    return problem(`TARGET must be one of ${targetNames.join(", ")}${meant}`);
  }
  for (const [flag, option] of Object.entries(optionOfFlag)) {
    const ofTargets = targetNames.filter((one) => targets.get(one)?.options.includes(option));
    if (!isGiven(flag) || ofTargets.includes(known)) continue;
    const name = flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return problem(`--${name} applies to ${ofTargets.join(", ")}; ${known} ignores it`);
  }
  const versions = new Map<keyof typeof versionRanges, MinorVersion>();
  for (const name of ["envoyVersion", "istioVersion", "gatewayVersion"] as const) {
    const range = versionRanges[name];
    const version = parseMinorVersion(flags[name], range);
    const flag = `--${name.replace("V", "-v")}`;
    const bounds = `${formatMinorVersion(range.min)} to ${formatMinorVersion(range.max)}`;
    if (version === undefined) return problem(`${flag} must be a version from ${bounds}`);
    versions.set(name, version);
  }
  const { namespace, replicas, form, role, runbookUrl, withoutClientCertificates = false } = flags;
  if (!isNamespace(namespace)) return problem("--namespace must be a valid Kubernetes name");
  const count = /^\d{1,6}$/.test(replicas) ? Number(replicas) : 0;
  if (count < 1 || count > replicasMax)
    return problem(`--replicas must be from 1 to ${replicasMax}`);
  if (flags.check === true && flags.out === undefined) {
    return problem("--check compares with a folder: set --out");
  }
  if (runbookUrl !== undefined && !plainUrl.test(runbookUrl)) {
    return problem("--runbook-url must be an http or https URL without a fragment");
  }
  const image = flags.image === undefined ? undefined : parseImageName(flags.image);
  if (flags.image !== undefined && image === undefined) {
    return problem("--image must be a name with a tag, or with a digest (sha256:...)");
  }
  const options: GenerateOptions = {
    ...defaultGenerateOptions,
    ...Object.fromEntries(versions),
    form,
    roles: role === "both" ? defaultGenerateOptions.roles : [role],
    namespace,
    replicas: count,
    withoutClientCertificates,
    ...(image === undefined ? {} : { image }),
    ...(runbookUrl === undefined ? {} : { runbookUrl }),
  };
  return { kind: "value", value: { target: known, options } };
}

/** Alerts append a section to the URL. Prometheus would interpret braces. */
const plainUrl = /^https?:\/\/[^\s#{}]+$/;

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}
