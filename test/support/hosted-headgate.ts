import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type HeadgateOptions,
  type HeadgatePlace,
  headgatePlace,
  placeEnv,
  RunningHeadgate,
} from "./headgate-process.js";
import type { Stage } from "./stage.js";
import { waitFor, within } from "./wait.js";

/** How long one may take to start or to end, in milliseconds. */
const answerMsMax = 60_000;

/** What the host is asked to do. */
type HostOrder =
  | {
      readonly order: "start";
      readonly name: string;
      readonly env: Readonly<Record<string, string>>;
      readonly logPath: string;
    }
  /** A patient end waits for the drain delay. */
  | { readonly order: "close"; readonly name: string; readonly isPatient: boolean };

/** What it answers. */
interface HostAnswer {
  /** Of a start that failed: how a process would have ended, and what it would have said. */
  readonly exitCode?: number;
  readonly message?: string;
  /** Of an end: whether all calls ended by themselves. */
  readonly isClean?: boolean;
}

/** The process that hosts them, from the first that is started until this process ends. */
class HeadgateHost {
  #process: ChildProcess | undefined;
  #lastId = 0;
  readonly #waiting = new Map<number, (answer: HostAnswer) => void>();

  async ask(order: HostOrder): Promise<HostAnswer> {
    const host = this.#process ?? this.#start();
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<HostAnswer>((resolve) => this.#waiting.set(id, resolve));
    host.send({ id, ...order });
    return within(`the host has done: ${order.order}`, answerMsMax, answered);
  }

  get pid(): number {
    const { pid } = this.#process ?? {};
    if (pid === undefined) throw new Error("nothing is hosted yet");
    return pid;
  }

  #start(): ChildProcess {
    const { PATH = "", HOME = "" } = process.env;
    const path = fileURLToPath(new URL("./headgate-host-program.mjs", import.meta.url));
    const host = fork(path, [], {
      env: { PATH, HOME },
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    host.on("message", (message) => {
      const { id, ...answer } = message as HostAnswer & { readonly id: number };
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
    host.on("exit", () => {
      if (this.#process === host) this.#process = undefined;
      const message = "the process that hosts Headgates has ended";
      for (const resolve of this.#waiting.values()) resolve({ exitCode: 1, message });
      this.#waiting.clear();
    });
    // It ends with its channel, and so with this process, and keeps nobody waiting.
    host.unref();
    host.channel?.unref();
    this.#process = host;
    return host;
  }
}

const host = new HeadgateHost();

/**
 * A Headgate of the built program beside others in one process, where a start costs a fifth of that
 * of a `HeadgateProcess`. It is all that a replica is, but for signals, exit codes and a memory of
 * its own.
 */
export class HostedHeadgate extends RunningHeadgate {
  readonly #name: string;
  readonly #options: HeadgateOptions;
  readonly #logPath: string;
  #isOpen = false;

  private constructor(stage: Stage, place: HeadgatePlace, options: HeadgateOptions) {
    super(stage, place);
    this.#options = options;
    this.#name = `hosted headgate on ${place.grpcPort}`;
    this.#logPath = join(stage.folder, `headgate-${place.grpcPort}.log`);
    stage.printAtFailure(this);
    stage.atEnd(() => this.#close(false));
  }

  /** Starts one; resolves when it says that it is ready. */
  static async start(stage: Stage, options: HeadgateOptions): Promise<HostedHeadgate> {
    const headgate = await HostedHeadgate.open(stage, options);
    await waitFor("it is ready", async () => (await headgate.get("/readyz")).status === 200);
    return headgate;
  }

  /** Starts one that may have no policy yet; resolves when its ports are open. */
  static async open(stage: Stage, options: HeadgateOptions): Promise<HostedHeadgate> {
    const headgate = await HostedHeadgate.prepare(stage, options);
    await headgate.restart();
    return headgate;
  }

  /** One that is not started yet, whose ports others have to know first. */
  static async prepare(stage: Stage, options: HeadgateOptions): Promise<HostedHeadgate> {
    return new HostedHeadgate(stage, await headgatePlace(stage, options), options);
  }

  /** Tries to start one that cannot be; answers how its process would end, and its words. */
  static async startFailure(
    stage: Stage,
    options: HeadgateOptions,
  ): Promise<{ readonly code: number; readonly output: string }> {
    const headgate = await HostedHeadgate.prepare(stage, options);
    const { exitCode, message } = await headgate.#tryStart();
    if (exitCode === undefined) throw new Error("it started");
    return { code: exitCode, output: `${headgate.output}${message}` };
  }

  get name(): string {
    return this.#name;
  }

  get output(): string {
    return existsSync(this.#logPath) ? readFileSync(this.#logPath, "utf8") : "";
  }

  get pid(): number {
    return host.pid;
  }

  get isRunning(): boolean {
    return this.#isOpen;
  }

  /** Starts it, or starts it again on the same ports; resolves when they are open. */
  async restart(): Promise<void> {
    const { exitCode, message } = await this.#tryStart();
    if (exitCode !== undefined) throw new Error(`it did not start: ${message}`);
  }

  /** Ends it as SIGTERM does; answers whether all calls ended by themselves. */
  async terminate(): Promise<boolean> {
    return this.#close(true);
  }

  async #tryStart(): Promise<HostAnswer> {
    const { policy, env: more = {} } = this.#options;
    const own = policy === undefined ? {} : { HEADGATE_POLICY: this.policyPath };
    const env = { ...placeEnv(this), ...own, ...more };
    const answer = await host.ask({
      order: "start",
      name: this.#name,
      env,
      logPath: this.#logPath,
    });
    this.#isOpen = answer.exitCode === undefined;
    return answer;
  }

  async #close(isPatient: boolean): Promise<boolean> {
    if (!this.#isOpen) return true;
    this.#isOpen = false;
    const { isClean = false } = await host.ask({ order: "close", name: this.#name, isPatient });
    return isClean;
  }
}
