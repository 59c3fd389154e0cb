import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_Code,
} from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import type { ProgramExit } from "./child-program.js";
import { storeBudgetEnv } from "./failure-modes.js";
import { type HeadgateOptions, HeadgateProcess } from "./headgate-process.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import { type RlsAnswer, type RlsAsk, RlsClient } from "./rls-client.js";
import type { Stage } from "./stage.js";
import { within } from "./wait.js";

/** Settings of a Headgate that ends without waiting for load balancers. */
export const quickDrain = { HEADGATE_DRAIN_DELAY_MS: "0" };

/** A Headgate in the place of envoyproxy/ratelimit, and one who asks it over gRPC. */
export interface DropIn {
  readonly headgate: HeadgateProcess;
  readonly client: RlsClient;
  /** Asks for one descriptor of these `key=value` entries; answers as `told` writes it. */
  readonly ask: (...entries: readonly string[]) => Promise<string>;
  /** Asks anything. */
  readonly askAll: (question: RlsAsk) => Promise<string>;
}

/** Starts one; resolves when it is ready. */
export async function startDropIn(stage: Stage, options: HeadgateOptions): Promise<DropIn> {
  const env = { ...quickDrain, ...storeBudgetEnv, ...options.env };
  const headgate = await HeadgateProcess.start(stage, { ...options, env });
  const client = new RlsClient(headgate.grpcPort);
  stage.atEnd(() => client.close());
  const askAll = async (question: RlsAsk): Promise<string> => told(await client.ask(question));
  return { headgate, client, ask: (...entries) => askAll({ descriptors: [entries] }), askAll };
}

/**
 * An answer in short: the overall code, then for each descriptor what is left and of how much.
 * Examples: `OK: 4/5, -` (nothing limits the second), `OVER: over 0/5, 9/10`, `UNAVAILABLE`.
 */
export function told(answer: RlsAnswer): string {
  if (answer.kind === "failed") return answer.statusName;
  const statuses = answer.response.statuses.map(toldStatus);
  return `${answer.isDenied ? "OVER" : "OK"}: ${statuses.join(", ")}`;
}

function toldStatus({ code, currentLimit, limitRemaining }: DescriptorStatus): string {
  const over = code === RateLimitResponse_Code.OVER_LIMIT ? "over " : "";
  if (currentLimit !== undefined) {
    return `${over}${limitRemaining}/${currentLimit.requestsPerUnit}`;
  }
  return limitRemaining === 0 ? `${over}-` : `${over}${limitRemaining}`;
}

/** What a command of Headgate's printed, and its exit code. */
export interface CommandEnd {
  readonly code: number;
  readonly output: string;
}

/** Runs `headgate` with these words until it ends. */
export function runHeadgate(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandEnd> {
  const { PATH = "", HOME = "" } = process.env;
  const args = [resolve("dist/cli/main.js"), ...words];
  return new Promise((done) => {
    const options = { env: { PATH, HOME, ...env }, timeout: 20_000 };
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : error === null ? 0 : -1;
      done({ code, output: stdout + stderr });
    });
  });
}

/** Starts a Headgate that is expected to end by itself. */
export async function startThatEnds(
  stage: Stage,
  options: HeadgateOptions,
): Promise<ProgramExit & { readonly output: string }> {
  const headgate = await HeadgateProcess.prepare(stage, options);
  const program = headgate.spawn();
  const exit = await within("the process ends", 20_000, program.exited);
  return { ...exit, output: program.output };
}

/** A page of its debug port. */
export async function debugPage({ process }: HeadgateProcess, path: string): Promise<HttpAnswer> {
  const line = process.output.split("\n").find((one) => one.includes('"debugListening"'));
  if (line === undefined) throw new Error("there is no debug port");
  const http = new HttpClient();
  try {
    return await http.send({ port: JSON.parse(line).address.port, path });
  } finally {
    http.close();
  }
}

/** All statistics by the names of envoyproxy/ratelimit. */
export async function statistics(headgate: HeadgateProcess): Promise<ReadonlyMap<string, number>> {
  const { body } = await debugPage(headgate, "/stats");
  const lines = body.trim().split("\n");
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(": ");
      return [line.slice(0, at), Number(line.slice(at + 2))];
    }),
  );
}

/** The names of envoyproxy/ratelimit that the README tells are taken and change nothing. */
export async function ignoredNames(): Promise<readonly string[]> {
  return namesIn(await readmePart("ignored"));
}

/** The names of the environment that the README's tables of settings have. */
export async function settingNames(): Promise<readonly string[]> {
  const rows = (await readmePart("options")).split("\n");
  return rows.flatMap((row) => namesIn(row.split("|")[1] ?? ""));
}

async function readmePart(name: string): Promise<string> {
  const text = await readFile("README.md", "utf8");
  const pattern = new RegExp(`<!-- generated: ${name} -->([\\s\\S]*?)<!-- end -->`);
  return pattern.exec(text)?.[1] ?? "";
}

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([A-Z][A-Z0-9_<>a-z]+)`/g)].map(([, name = ""]) => name);
}
