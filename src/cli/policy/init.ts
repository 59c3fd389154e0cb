import { lstat } from "node:fs/promises";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { parsePolicy } from "../../policy/parse.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { writeWholeFile } from "../input/whole-file.js";
import type { CommandContext } from "../terminal/context.js";

interface InitOptions {
  readonly name: string;
  readonly service: string;
  readonly upstream?: string;
  readonly force?: true;
}

/** Adds `headgate init`: writes a first policy, with comments. */
export function addInit(program: Command, context: CommandContext): void {
  const command = program
    .command("init")
    .description("write a first policy, with comments")
    .argument("[FILE]", "where to, or - for standard output", "policy.yaml")
    .option("--name <NAME>", "the policy's name", "my-policy")
    .option("--service <NAME>", "the service that it protects", "my-service")
    .option("--upstream <HOST:PORT>", "where the service listens; default <service>:8080")
    .option("--force", "replace a file that is there")
    .addHelpText(
      "before",
      `Examples:
  headgate init
  headgate init --name shop --service orders --upstream orders.shop.svc.cluster.local:8080
  headgate init - | headgate check -
`,
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 written, 1 the file is there or cannot be written, 2 usage.`,
    )
    .action(async (file: string, options: InitOptions) => {
      const complain = (message: string): never => command.error(`error: ${message}`);
      const upstream = readUpstream(options);
      if (upstream === undefined) return complain("--upstream is a host and a port: orders:8080");
      const text = starterPolicy({ name: options.name, service: options.service, upstream });
      const parsed = parsePolicy([{ file: "policy.yaml", text }]);
      if (parsed.kind === "problems") return complain(formatProblems(parsed));
      context.exitWith(await write(file, text, { force: options.force === true, context }));
    });
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
  file: string,
  text: string,
  { force, context }: { readonly force: boolean; readonly context: CommandContext },
): Promise<number> {
  const { output } = context;
  if (file === "-") {
    output.out(text.replace(/\n$/, ""));
    return exitCodes.ok;
  }
  const path = visibleText(file);
  if (!force && (await isThere(file))) {
    output.err(`headgate init: ${path} is there already; --force replaces it`);
    return exitCodes.failure;
  }
  try {
    await writeWholeFile(file, text);
  } catch (error) {
    output.err(`headgate init: ${path} cannot be written: ${readErrorWords(error)}`);
    return exitCodes.failure;
  }
  output.out(`${path} is written. Next: headgate check ${path}`);
  return exitCodes.ok;
}

/** A link that leads nowhere is there too. */
async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch {
    return false;
  }
}

/** What a first policy is about. */
interface Starter {
  readonly name: string;
  readonly service: string;
  readonly upstream: { readonly address: string; readonly port: string };
}

/** The text of a first policy: small, right, and with a word on each part. */
function starterPolicy({ name, service, upstream }: Starter): string {
  const quoted = (text: string): string => (isPlain(text) ? text : JSON.stringify(text));
  return `# A policy of Headgate. \`headgate check\` says whether it is right; \`headgate schema\`
# gives editors what they need to complete and explain each name.
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: ${quoted(name)}}
spec:
  # Who may go: the language of envoyproxy/ratelimit. What a request is asked about stands at the
  # service below; what is not limited here passes.
  rateLimits:
    - domain: ${quoted(name)}
      descriptors:
        # Each client address by itself: 600 a minute, at most 100 at once.
        - key: remote_address
          rate_limit: {unit: minute, requests_per_unit: 600, burst: 100}

  # What protects each upstream service. A name is a whole service: the rest has usual values.
  services:
    - name: ${quoted(service)}
      # Values of \`:authority\` that mean it; left out, the route names the service.
      # hosts: [orders.example]
      upstream: {address: ${quoted(upstream.address)}, port: ${upstream.port}}
      rateLimit: {domain: ${quoted(name)}, descriptors: [[remote_address]]}
      # Sheds low classes first as the service fills, refuses what comes too late, and learns how
      # many requests may be in flight. Until \`dryRun\` goes, it counts and refuses nobody.
      admission: {dryRun: true}
      # Tries again what the service has surely not begun.
      # retries: {numRetries: 2}

  # Limits that proxies hold by themselves, without a call for each request: Headgate tells each
  # its part of the limit, by what it needs, and what callers use by RLS counts, too.
  # quotas:
  #   - name: tenants
  #     domain: ${quoted(name)}
  #     bucket: [{header: x-tenant, as: tenant}]
  #     rate: {hits: 1000, period: 1s, burst: 2000}

  # What holds for every proxy. How many share a limit while no Headgate tells them their part:
  proxies: {expected: 1}
`;
}

/** Whether YAML reads it as the text that it is. */
function isPlain(text: string): boolean {
  return /^[a-z][a-z0-9.-]*$/.test(text) && !/^(?:true|false|null|y|n|yes|no|on|off)$/.test(text);
}
