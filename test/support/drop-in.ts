import {
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_Code,
} from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { referencePage } from "./docs.js";
import { type HeadgateOptions, HeadgateProcess, type RunningHeadgate } from "./headgate-process.js";
import { HostedHeadgate } from "./hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import { type RlsAnswer, type RlsAsk, RlsClient } from "./rls-client.js";
import type { Stage } from "./stage.js";

/** Settings of a Headgate that ends without waiting for load balancers. */
export const quickDrain = { HEADGATE_DRAIN_DELAY_MS: "0" };

/** A Headgate in the place of envoyproxy/ratelimit, and one who asks it over gRPC. */
export interface DropIn<Headgate extends RunningHeadgate = RunningHeadgate> {
  readonly headgate: Headgate;
  readonly client: RlsClient;
  /** Asks for one descriptor of these `key=value` entries; answers as `told` writes it. */
  readonly ask: (...entries: readonly string[]) => Promise<string>;
  /** Asks anything. */
  readonly askAll: (question: RlsAsk) => Promise<string>;
}

/** Starts one in a process of its own; resolves when it is ready. */
export async function startDropInProcess(
  stage: Stage,
  options: HeadgateOptions,
): Promise<DropIn<HeadgateProcess>> {
  return dropInOf(stage, await HeadgateProcess.start(stage, quickOptions(options)));
}

/** Starts one beside others in one process; resolves when it is ready. */
export async function startDropIn(
  stage: Stage,
  options: HeadgateOptions,
): Promise<DropIn<HostedHeadgate>> {
  return dropInOf(stage, await HostedHeadgate.start(stage, quickOptions(options)));
}

function quickOptions({ env, ...options }: HeadgateOptions): HeadgateOptions {
  return { ...options, env: { ...quickDrain, ...env } };
}

function dropInOf<Headgate extends RunningHeadgate>(
  stage: Stage,
  headgate: Headgate,
): DropIn<Headgate> {
  const client = new RlsClient(headgate.grpcPort);
  stage.atEnd(() => client.close());
  const askAll = async (question: RlsAsk): Promise<string> => reported(await client.ask(question));
  return { headgate, client, ask: (...entries) => askAll({ descriptors: [entries] }), askAll };
}

/**
 * An answer in short: the overall code, then for each descriptor what is left and of how much.
 * Examples: `OK: 4/5, -` (nothing limits the second), `OVER: over 0/5, unknown`, `UNAVAILABLE`.
 */
export function reported(answer: RlsAnswer): string {
  if (answer.kind === "failed") return answer.statusName;
  const statuses = answer.response.statuses.map(reportedStatus);
  return `${answer.isDenied ? "OVER" : "OK"}: ${statuses.join(", ")}`;
}

function reportedStatus({ code, currentLimit, limitRemaining }: DescriptorStatus): string {
  if (code === RateLimitResponse_Code.UNKNOWN) return "unknown";
  const over = code === RateLimitResponse_Code.OVER_LIMIT ? "over " : "";
  if (currentLimit !== undefined) {
    return `${over}${limitRemaining}/${currentLimit.requestsPerUnit}`;
  }
  return limitRemaining === 0 ? `${over}-` : `${over}${limitRemaining}`;
}

/** A page of its debug port. */
export async function debugPage(headgate: RunningHeadgate, path: string): Promise<HttpAnswer> {
  const http = new HttpClient();
  try {
    return await http.send({ port: headgate.portOf("debug"), path });
  } finally {
    http.close();
  }
}

/** All statistics by the names of envoyproxy/ratelimit. */
export async function statistics(headgate: RunningHeadgate): Promise<ReadonlyMap<string, number>> {
  const { body } = await debugPage(headgate, "/stats");
  const lines = body.trim().split("\n");
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(": ");
      return [line.slice(0, at), Number(line.slice(at + 2))];
    }),
  );
}

/** The names of envoyproxy/ratelimit that are documented as taken and changing nothing. */
export function ignoredNames(): readonly string[] {
  return namesIn(settings().ignored);
}

/** The names of the environment that the tables of settings have. */
export function settingNames(): readonly string[] {
  const rows = settings().taken.split("\n");
  return rows.flatMap((row) => namesIn(row.split("|")[1] ?? ""));
}

/** The page of settings: those that are taken, and those that are and change nothing. */
function settings(): { readonly taken: string; readonly ignored: string } {
  const [taken = "", ignored = ""] = referencePage("settings.md").split(
    "## Accepted without effect",
  );
  return { taken, ignored };
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([A-Z][A-Z0-9_<>a-z]+)`/g)].map(([, name = ""]) => name);
}
