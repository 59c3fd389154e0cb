import { exitCodes } from "../../app/base/failure.js";
import { readPolicyFiles } from "../../app/config/policy-files.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { createPolicyBuilder, type Policy } from "../../policy/policy.js";
import { formatProblems, visibleText } from "../../policy/problems/problem.js";
import type { Output } from "../terminal/context.js";

/** A policy that a command was given, or the exit code after what is wrong has been told. */
type PolicyArgument =
  | { readonly kind: "policy"; readonly policy: Policy; readonly sources: readonly PolicyText[] }
  | { readonly kind: "failed"; readonly exitCode: number };

/** Reads files and directories of either dialect as one policy; tells on `output` what is wrong. */
export async function readPolicyArgument(
  paths: readonly string[],
  command: string,
  output: Output,
): Promise<PolicyArgument> {
  const sources: PolicyText[] = [];
  const versions: string[] = [];
  for (const path of new Set(paths)) {
    const read = await readPolicyFiles(path);
    if (read.kind === "unreadable") {
      output.err(`headgate ${command}: ${visibleText(read.message)}`);
      return { kind: "failed", exitCode: exitCodes.failure };
    }
    sources.push(...read.sources);
    versions.push(read.version);
  }
  const parsed = parsePolicy(sources);
  if (parsed.kind === "problems") {
    output.err(formatProblems(parsed));
    return { kind: "failed", exitCode: exitCodes.invalidPolicy };
  }
  const builder = createPolicyBuilder(versions.join("+"));
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  builder.addServices(parsed.services);
  builder.setQuotas(parsed.quotas);
  return { kind: "policy", policy: builder.finish(), sources };
}
