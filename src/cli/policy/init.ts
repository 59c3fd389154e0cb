import { lstat, realpath } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { isInstalledPackage, ownFile } from "../../app/base/own-file.js";
import { parsePolicy } from "../../policy/parse.js";
import { spec } from "../../policy/policy-form.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { proxies } from "../../policy/proxies/proxies.js";
import { service } from "../../policy/services/service-form.js";
import type { Form, NameRow } from "../../policy/text/form.js";
import type { DeclaredFields } from "../../policy/text/object.js";
import { writeWholeFile } from "../input/whole-file.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { addHelpTexts } from "../terminal/help-texts.js";
import { policySchemaText, schemaFileName } from "./schema.js";

interface InitOptions {
  readonly name: string;
  readonly service: string;
  readonly upstream?: string;
  readonly force?: true;
}

/** Adds `headgate init`, which writes a first policy with comments. */
export function addInit(program: Command, context: CommandContext): void {
  const command = program
    .command("init")
    .description("write a first policy, with comments")
    .argument("[FILE]", "the file to write, or - for standard output", "policy.yaml")
    .option("--name <NAME>", "the name of the policy", "my-policy")
    .option("--service <NAME>", "the service to protect", "my-service")
    .option("--upstream <HOST:PORT>", "the address of the service; default <service>:8080")
    .option("--force", "replace an existing policy");
  addHelpTexts(command, {
    examples: `
  headgate init
  headgate init --name shop --service orders --upstream orders.shop.svc.cluster.local:8080
  headgate init - | headgate check -`,
    notes: `
The first line points editors to the JSON Schema: in the package, if the project has it in its
node_modules, otherwise in ${schemaFileName}, which is written next to the policy.`,
    exitCodes: "Exit codes: 0 written, 1 the file exists or cannot be written, 2 usage.",
  }).action(async (file: string, options: InitOptions) => {
    const complain = (message: string): never => command.error(`error: ${message}`);
    const upstream = readUpstream(options);
    if (upstream === undefined)
      return complain("--upstream must be a host and a port: orders:8080");
    const schema = file === "-" ? schemaFileName : await schemaPath(dirname(file));
    const { name, service } = options;
    const text = starterPolicy({ name, service, upstream, schema });
    const parsed = parsePolicy([{ file: "policy.yaml", text }]);
    if (parsed.kind === "problems") return complain(formatProblems(parsed));
    if (file === "-") return context.output.out(text.trimEnd());
    const isForced = options.force === true;
    await write({ file, text, schema, isForced }, context);
  });
}

/**
 * Returns the path of the schema for editors from a policy's folder: in the package, if it is in
 * the project's node_modules, and otherwise next to the policy.
 */
async function schemaPath(folder: string): Promise<string> {
  const packaged = ownFile("policy.schema.json");
  if (!isInstalledPackage() || packaged === undefined) return schemaFileName;
  const path = fileURLToPath(packaged);
  const project = path.slice(0, path.lastIndexOf(join(sep, "node_modules", sep)) + 1);
  try {
    const real = join(await realpath(folder), sep);
    return real.startsWith(project) ? relative(real, path) : schemaFileName;
  } catch {
    return schemaFileName;
  }
}

function readUpstream({
  service,
  upstream = `${service}:8080`,
}: InitOptions): { readonly address: string; readonly port: string } | undefined {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):([0-9]{1,5})$/.exec(upstream) ?? [];
  const address = bracketed ?? plain;
  return address === undefined || port === undefined ? undefined : { address, port };
}

async function write(
  { file, text, schema, isForced }: StarterFile,
  { output }: CommandContext,
): Promise<void> {
  const path = visibleText(file);
  const schemaFile = join(dirname(file), schemaFileName);
  if (!isForced && (await isThere(file))) {
    throw new CommandFailure(exitCodes.failure, `${path} exists already; --force replaces it`);
  }
  const isSchemaMissing = schema === schemaFileName && !(await isThere(schemaFile));
  await writeWholeFile(file, text);
  if (isSchemaMissing) await writeWholeFile(schemaFile, policySchemaText());
  output.out(
    [
      `Wrote ${path}${isSchemaMissing ? `, and ${visibleText(schemaFile)} for your editor` : ""}.`,
      "Next:",
      `  headgate check ${path}`,
      `  headgate generate envoy ${path} --out envoy`,
      `  headgate serve --policy ${path}`,
    ].join("\n"),
  );
}

/** A broken link also counts as existing. */
async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch {
    return false;
  }
}

/** A first policy and its destination. */
interface StarterFile {
  readonly file: string;
  readonly text: string;
  /** Path of the schema in its first line. */
  readonly schema: string;
  readonly isForced: boolean;
}

/** Values for a first policy. */
interface Starter {
  readonly name: string;
  readonly service: string;
  readonly upstream: { readonly address: string; readonly port: string };
  readonly schema: string;
}

/** Returns the text of a first policy: small, valid, and with a comment on each part. */
function starterPolicy({ name, service: protectedName, upstream, schema }: Starter): string {
  const quoted = (text: string): string => (isPlain(text) ? text : JSON.stringify(text));
  return `# yaml-language-server: $schema=${schema}

# A Headgate policy. \`headgate check\` finds its mistakes.
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: ${quoted(name)}}
spec:
  # Rate limits, in the language of envoyproxy/ratelimit. The service below says which descriptors
  # its requests are checked against. A request that matches no limit is allowed.
  rateLimits:
    - domain: ${quoted(name)}
      descriptors:
        # 600 requests a minute for each client address, at most 100 at once.
        - key: remote_address
          rate_limit: {name: per-address, unit: minute, requests_per_unit: 600, burst: 100}

  # The upstream services that Envoy protects.
  services:
    - name: ${quoted(protectedName)}
${note(service.rows.hosts, 6)}
      # hosts: [orders.example]
      upstream: {address: ${quoted(upstream.address)}, port: ${upstream.port}}
      rateLimit: {domain: ${quoted(name)}, descriptors: [[remote_address]]}
      # Admission control: learns how many requests the service can take at once, and sheds the
      # least important ones first when there are more. A dry run counts and refuses nothing.
      admission: {dryRun: true}
${optionsOf(service.rows)}

${note(spec.rows.quotas, 2)}
  # quotas:
  #   - name: tenants
  #     domain: ${quoted(name)}
  #     bucket: [{header: x-tenant, as: tenant}]
  #     rate: {hits: 1000, period: 1s, burst: 2000}

${note(spec.rows.waitingRooms, 2)}
  # waitingRooms:
  #   - name: lobby
  #     service: ${quoted(protectedName)}
  #     capacity: {activeUsers: 500}

${note(spec.rows.budgets, 2)}
  # budgets:
  #   - name: team-month
  #     per: [{header: x-team}]
  #     amount: 1_000_000 tokens
  #     period: month

  proxies:
${note(proxies.rows.expected, 4)}
    expected: ${proxies.rows.expected.writtenDefault}
    # Headgate, and where Envoy listens, for a first try on one machine. Without these lines Envoy
    # asks headgate.headgate.svc.cluster.local and listens on all addresses.
    headgate: {address: 127.0.0.1}
    listener: {address: 127.0.0.1}
`;
}

/** Maximum length of a comment's line, in characters. */
const noteCharsMax = 100;

/** Returns the documentation of a field as a comment. */
function note({ docs }: NameRow, indent: number): string {
  const lines: string[] = [];
  for (const word of docs.split(" ")) {
    const [last = "", longer = `${last} ${word}`] = [lines.at(-1)];
    const fits = lines.length > 0 && indent + 2 + longer.length <= noteCharsMax;
    lines.splice(fits ? -1 : lines.length, 1, fits ? longer : word);
  }
  return lines.map((line) => `${" ".repeat(indent)}# ${line}`).join("\n");
}

/** Returns unset options of the service as comments: each map with defaults, and its defaults. */
function optionsOf(rows: DeclaredFields): string {
  const indent = 6;
  return Object.entries(rows)
    .filter(([name]) => !["upstream", "rateLimit", "admission"].includes(name))
    .flatMap(([name, row]) => {
      const said = defaultsOf(row.form);
      if (said.length === 0) return [];
      const flow = `${name}: {${said.join(", ")}}`;
      const isShort = indent + 2 + flow.length <= noteCharsMax;
      const lines = isShort ? [flow] : [`${name}:`, ...said.map((line) => `  ${line}`)];
      return [note(row, indent), ...lines.map((line) => `${" ".repeat(indent)}# ${line}`)];
    })
    .join("\n");
}

/** Returns the defaults of a map by name; none if it has required names. */
function defaultsOf(form: Form): readonly string[] {
  if (form.kind === "any") return form.of.flatMap(defaultsOf);
  if (form.kind !== "map" || form.map().required.length > 0) return [];
  return Object.entries<NameRow & { readonly fallback?: unknown }>(form.map().rows).flatMap(
    ([name, { writtenDefault, fallback }]) =>
      writtenDefault === undefined || fallback === undefined ? [] : [`${name}: ${writtenDefault}`],
  );
}

/** Reports whether YAML reads a text without quotes as the same text. */
function isPlain(text: string): boolean {
  return /^[a-z][a-z0-9.-]*$/.test(text) && !/^(?:true|false|null|y|n|yes|no|on|off)$/.test(text);
}
