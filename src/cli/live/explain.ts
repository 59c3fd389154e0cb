import type { Command } from "commander";
import { sha256 } from "../../app/base/sha256.js";
import { LearnedUsage } from "../../core/budgets/learned-usage.js";
import { TopUpTable } from "../../core/budgets/top-up.js";
import { usageCountMax } from "../../core/budgets/usage.js";
import { costHitsMax } from "../../core/limits/bucket.js";
import { noOverrides } from "../../core/limits/override-table.js";
import { Explainer } from "../../decide/inspect/explain.js";
import { BudgetExplainer } from "../../decide/inspect/explain-budgets.js";
import { defaultSwitches } from "../../decide/rate-limit/switches.js";
import type {
  ExplainRequest,
  ExplainResponse,
  HttpRequest,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import { quoteText } from "../../policy/problems/problem.js";
import { type ExplainByParts, explainBy } from "../../rpc/admin/explain/explain-request.js";
import type { Plain } from "../../rpc/codec/plain-message.js";
import { addAdminCommandFlags, policyExitCodes } from "../admin/admin-flags.js";
import { collect } from "../input/collect.js";
import { readCount } from "../input/number-flags.js";
import { readPolicyArgument } from "../input/policy-argument.js";
import { isIdLike } from "../policy/help-problem.js";
import { usageFailure } from "../terminal/command-failure.js";
import type { CommandContext } from "../terminal/context.js";
import { drawingOf, type PrintFlags } from "../terminal/drawing.js";
import { entriesHelp, parseEntries } from "../terminal/key-selector.js";
import { drawExplanation } from "./explain-report.js";

interface ExplainFlags extends PrintFlags {
  readonly hits?: string;
  readonly method?: string;
  readonly host?: string;
  readonly path?: string;
  readonly header?: readonly string[];
  readonly remoteAddress?: string;
  readonly model?: string;
  readonly maxTokens?: string;
  readonly policy?: readonly string[];
  readonly candidate?: readonly string[];
}

/** Adds `headgate explain`: why a request is allowed or denied. */
export function addExplain(program: Command, context: CommandContext): void {
  const command = program
    .command("explain")
    .description("explain why a request is allowed or denied; nothing is charged")
    .argument("[DOMAIN]", "as Envoy sends it: a domain and descriptors")
    .argument("[ENTRIES...]", "descriptors, such as plan=free,user=ann")
    .option("--hits <COUNT>", "the cost in hits; default 1")
    .option("--host <HOST>", "as a caller sends it: the host, or the name of a service")
    .option("--method <METHOD>", "with --host; default GET")
    .option("--path <PATH>", "with --host; default /")
    .option("--header <NAME: VALUE>", "with --host; repeatable", collect)
    .option("--remote-address <ADDRESS>", "with --host: the caller's address")
    .option("--model <MODEL>", "with --host: the model that the body names")
    .option("--max-tokens <COUNT>", "with --host: the output tokens that the body declares at most")
    .option("--candidate <FILE>", "compare with another policy; repeatable", collect)
    .option("--policy <FILE>", "use this policy, with empty buckets; calls no Headgate", collect);
  addAdminCommandFlags(command, {
    examples: `
  headgate explain shop plan=free,user=ann
  headgate explain --host shop.example --path /cart --header 'x-user: ann'
  headgate explain --host llm.example --model gpt-4o --max-tokens 500
  headgate explain shop plan=free,user=ann --candidate new.yaml
  headgate explain --policy policy.yaml shop plan=free,user=ann
  headgate explain shop plan=free,user=ann -o json | jq .current.isDenied`,
    notes: `
${entriesHelp}`,
    exitCodes: policyExitCodes,
  }).action(async (domain: string | undefined, texts: readonly string[], flags: ExplainFlags) => {
    const request = readRequest({ domain, texts, flags });
    const { policy, candidate = [], output } = flags;
    const files = policy && { policy, candidate };
    if (files !== undefined && output === "table") {
      const answer = await explainByFiles(request, files, context);
      context.output.out(drawExplanation(answer, drawingOf(context)).join("\n"));
      return;
    }
    // Loaded here, because messages and calls take 60 ms of CPU to load.
    const { explainAsMessage } = await import("./explain-message.js");
    const byFiles = files && (() => explainByFiles(request, files, context));
    await explainAsMessage({ command, context, request, candidate, byFiles });
  });
}

interface Asked {
  readonly domain: string | undefined;
  readonly texts: readonly string[];
  readonly flags: ExplainFlags;
}

interface PolicyFiles {
  readonly policy: readonly string[];
  /** Empty: there is no policy to compare with. */
  readonly candidate: readonly string[];
}

/** The request to explain, as in the admin API. */
type Question = Plain<ExplainRequest>["request"];

async function explainByFiles(
  request: Question,
  { policy, candidate }: PolicyFiles,
  { output }: CommandContext,
): Promise<Plain<ExplainResponse>> {
  const explain = async (paths: readonly string[]) => {
    const read = await readPolicyArgument(paths, output);
    const asked = { request, caller: owner, active: undefined };
    try {
      return await explainBy(offlineParts, read.policy, asked);
    } catch (thrown) {
      const { explainFailure } = await import("./explain-message.js");
      throw explainFailure(thrown);
    }
  };
  const current = await explain(policy);
  return candidate.length === 0 ? { current } : { current, candidate: await explain(candidate) };
}

function readRequest({ domain, texts, flags }: Asked): Question {
  if (flags.host !== undefined) {
    if (domain !== undefined) throw usageFailure("use either --host or DOMAIN ENTRIES");
    return { case: "http", value: readHttp(flags, flags.host) };
  }
  const { method, path, header, remoteAddress, model, maxTokens } = flags;
  const ofHttp = [method, path, header, remoteAddress, model, maxTokens];
  if (ofHttp.some((flag) => flag !== undefined)) {
    throw usageFailure(
      "--method, --path, --header, --remote-address, --model and --max-tokens need --host",
    );
  }
  if (domain !== undefined && texts.length === 0 && isIdLike(domain)) {
    throw usageFailure(`\`headgate help ${domain}\` explains ids and error codes`);
  }
  if (domain === undefined || texts.length === 0) {
    throw usageFailure("pass a request: shop plan=free,user=ann, or --host shop.example");
  }
  const hits = flags.hits === undefined ? 1n : BigInt(readCount("--hits", flags.hits, costHitsMax));
  const descriptors = texts.map((text) => ({ entries: [...parseEntries(text)], hits }));
  return { case: "descriptors", value: { domain, descriptors } };
}

function readHttp(flags: ExplainFlags, host: string): Plain<HttpRequest> {
  if (flags.hits !== undefined) {
    throw usageFailure("--hits needs DOMAIN ENTRIES; with --host the policy sets the cost");
  }
  const headers = new Map<string, string>();
  for (const text of flags.header ?? []) {
    const found = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*?)\s*$/s.exec(text);
    if (found === null) {
      throw usageFailure(`--header ${quoteText(text)}: write 'x-user: ann'`);
    }
    headers.set((found[1] ?? "").toLowerCase(), found[2] ?? "");
  }
  const { method = "GET", path = "/", remoteAddress = "", model = "", maxTokens } = flags;
  return {
    method,
    host,
    path,
    headers: Object.fromEntries(headers),
    remoteAddress,
    model,
    ...(maxTokens === undefined
      ? {}
      : { outputTokensMax: BigInt(readCount("--max-tokens", maxTokens, usageCountMax)) }),
  };
}

/** Users with access to a policy's files may see all of it. */
const owner = { name: "", grants: [{ role: "reader", domains: undefined }] } as const;

/** No service runs, so all buckets and accounts are empty, and there are no overrides. */
const offlineParts: ExplainByParts = {
  explainer: new Explainer({
    switches: defaultSwitches,
    digest: sha256,
  }),
  budgetExplainer: new BudgetExplainer({
    learned: new LearnedUsage(),
    topUps: new TopUpTable([]),
    digest: sha256,
    read: async () => [],
  }),
  overrides: { current: () => noOverrides },
  peek: async () => undefined,
  clock: systemClock,
};
