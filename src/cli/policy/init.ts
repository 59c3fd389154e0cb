import { lstat } from "node:fs/promises";
import type { Command } from "commander";
import { exitCodes } from "../../app/base/failure.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { parsePolicy } from "../../policy/parse.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import { writeWholeFile } from "../input/whole-file.js";
import type { CommandContext } from "../terminal/context.js";
import { starterPolicy } from "./starter-policy.js";

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
