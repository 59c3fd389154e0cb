import { exitCodes } from "../../app/base/failure.js";
import { type PolicyText, parsePolicy } from "../../policy/parse.js";
import { buildPolicy, type Policy } from "../../policy/policy.js";
import { formatProblems } from "../../policy/problems/problem.js";
import { CommandFailure } from "../terminal/command-failure.js";
import type { Output } from "../terminal/context.js";
import { readPolicyTexts } from "./policy-texts.js";

/**
 * Reads files and directories of either dialect as one policy.
 *
 * @throws CommandFailure if one cannot be read; without a message if they are not a valid policy,
 * which is reported on `output`
 */
export async function readPolicyArgument(
  paths: readonly string[],
  output: Output,
): Promise<{ readonly policy: Policy; readonly sources: readonly PolicyText[] }> {
  const { sources, version } = await readPolicyTexts(paths);
  const parsed = parsePolicy(sources);
  if (parsed.kind === "policy") return { policy: buildPolicy(version, parsed), sources };
  output.err(formatProblems(parsed));
  throw new CommandFailure(exitCodes.invalidPolicy, "");
}
