import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ChildProgram, ProgramExit } from "./child-program.js";
import { freePort } from "./free-port.js";
import { type HttpAnswer, HttpClient } from "./http-client.js";
import type { Stage } from "./stage.js";
import { waitFor, within } from "./wait.js";

/** How to start one. */
export interface HeadgateOptions {
  /** The policy's text; or where it lies already; or nothing, where settings name its source. */
  readonly policy?: string | { readonly path: string };
  /** Settings beyond the ports. Example: `{ REDIS_URL: "redis://127.0.0.1:6379" }`. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that takes its standard output. Example: `/dev/full`, a disk without room. */
  readonly logFile?: string;
}

const program = resolve("dist/cli/main.js");

/** How long its decisions wait for a store, in milliseconds; users have 10. */
export const storeBudgetMs = 500;

/** How long one may take to start or stop, in milliseconds. */
const startMsMax = 60_000;
const stopMsMax = 30_000;

/** Where one is. */
export interface HeadgatePlace {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly policyPath: string;
}

/** A Headgate of the built program, and what anybody may ask it over HTTP. */
export abstract class RunningHeadgate implements HeadgatePlace {
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly policyPath: string;
  readonly #http = new HttpClient();

  constructor(stage: Stage, { grpcPort, httpPort, policyPath }: HeadgatePlace) {
    this.grpcPort = grpcPort;
    this.httpPort = httpPort;
    this.policyPath = policyPath;
    stage.atEnd(() => this.#http.close());
  }

  /** All that it wrote since it was started. */
  abstract get output(): string;

  /** The process that it runs in. */
  abstract get pid(): number;

  /** Whether it was started, and has not ended. */
  abstract get isRunning(): boolean;

  /** Asks its HTTP port. */
  get(path: string): Promise<HttpAnswer> {
    return this.#http.send({ port: this.httpPort, path });
  }

  /** Asks `POST /json`. */
  postJson(body: unknown): Promise<HttpAnswer> {
    const headers = { "content-type": "application/json" };
    const text = JSON.stringify(body);
    return this.#http.send({ port: this.httpPort, path: "/json", headers, body: text });
  }

  /**
   * The sum of a metric's series that carry these labels (all of them, when none are given); 0 when
   * there is none.
   */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const { body } = await this.get("/metrics");
    return sumOfSeries(body, name, labels);
  }

  /** A port of its own choice, as its log has it. */
  portOf(what: "admin" | "control" | "debug" | "monitoring"): number {
    const lines = this.output.split("\n").filter((line) => line.includes(`"${what}Listening"`));
    const [, digits] = /"port":(\d+)/.exec(lines.at(-1) ?? "") ?? [];
    if (digits === undefined) throw new Error(`there is no ${what} port`);
    return Number(digits);
  }
}

/** Ports and a policy of its own for one; without a policy, a path where none is. */
export async function headgatePlace(
  stage: Stage,
  { policy }: Pick<HeadgateOptions, "policy">,
): Promise<HeadgatePlace> {
  const grpcPort = await freePort();
  const httpPort = await freePort();
  let policyPath = join(stage.folder, `policy-${grpcPort}.yaml`);
  if (typeof policy === "string") await writeFile(policyPath, policy);
  else if (policy !== undefined) policyPath = policy.path;
  return { grpcPort, httpPort, policyPath };
}

/**
 * The settings that say where one is, and how tests read its log; and that a machine which is busy
 * with other work for a moment is neither a slow store nor an overload: tests of those set theirs.
 */
export function placeEnv({ grpcPort, httpPort }: HeadgatePlace): Readonly<Record<string, string>> {
  return {
    HOST: "127.0.0.1",
    PORT: String(httpPort),
    GRPC_HOST: "127.0.0.1",
    GRPC_PORT: String(grpcPort),
    DEBUG_PORT: "0",
    HEADGATE_ADMIN_ADDR: "127.0.0.1:0",
    HEADGATE_CONTROL_ADDR: "127.0.0.1:0",
    LOG_FORMAT: "json",
    HEADGATE_LOOP_DELAY_MS_MAX: "10000",
    HEADGATE_STORE_BUDGET_MS: String(storeBudgetMs),
  };
}

/** A Headgate as it is shipped: the built program in a process of its own, on loopback. */
export class HeadgateProcess extends RunningHeadgate {
  readonly #stage: Stage;
  readonly #options: HeadgateOptions;
  #program: ChildProgram | undefined;

  private constructor(stage: Stage, place: HeadgatePlace, options: HeadgateOptions) {
    super(stage, place);
    this.#stage = stage;
    this.#options = options;
  }

  /** Starts one; resolves when it says that it is ready. */
  static async start(stage: Stage, options: HeadgateOptions): Promise<HeadgateProcess> {
    const headgate = await HeadgateProcess.prepare(stage, options);
    await headgate.restart();
    return headgate;
  }

  /** One that is not started yet, for starts that go wrong. */
  static async prepare(stage: Stage, options: HeadgateOptions): Promise<HeadgateProcess> {
    return new HeadgateProcess(stage, await headgatePlace(stage, options), options);
  }

  /** Starts it, or starts it again on the same ports. */
  async restart(): Promise<void> {
    const started = this.spawn();
    await waitFor(
      "Headgate is ready",
      async () => !started.isRunning || (await this.get("/readyz")).status === 200,
      { withinMs: startMsMax, everyMs: 50 },
    );
    if (!started.isRunning) throw new Error(`Headgate ended: ${started.output.slice(-2_000)}`);
  }

  /** Starts it without waiting for anything. */
  spawn(): ChildProgram {
    const { policy, env = {}, logFile } = this.#options;
    const flags = policy === undefined ? [] : ["--policy", this.policyPath];
    const words = [process.execPath, program, "serve", ...flags];
    // The shell becomes the program, so that signals reach it.
    const intoFile = ["/bin/sh", "-c", 'exec "$@" >"$0"', logFile ?? "", ...words];
    const [file = "", ...args] = logFile === undefined ? words : intoFile;
    const started = this.#stage.spawn({
      name: `headgate on ${this.grpcPort}`,
      file,
      args,
      env: { ...placeEnv(this), ...env },
    });
    this.#program = started;
    return started;
  }

  get process(): ChildProgram {
    if (this.#program === undefined) throw new Error("Headgate was never started");
    return this.#program;
  }

  get output(): string {
    return this.process.output;
  }

  get pid(): number {
    return this.process.pid;
  }

  get isRunning(): boolean {
    return this.process.isRunning;
  }

  /** Memory that it holds, in bytes, as it says itself. */
  residentBytes(): Promise<number> {
    return this.metric("process_resident_memory_bytes");
  }

  /** Ends it as an orchestrator does, and answers how it went. */
  async terminate(): Promise<ProgramExit> {
    this.process.signal("SIGTERM");
    return within("Headgate stops after SIGTERM", stopMsMax, this.process.exited);
  }
}

/** Sums up series of the Prometheus text format. Label values of the tests hold no quotes. */
export function sumOfSeries(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>>,
): number {
  const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  let sum = 0;
  for (const line of text.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (found?.[1] !== name) continue;
    const pairs = (found[2] ?? "").split(/,(?=\w+=")/);
    if (wanted.every((pair) => pairs.includes(pair))) sum += Number(found[3]);
  }
  return sum;
}
