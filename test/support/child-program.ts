import { type ChildProcess, spawn } from "node:child_process";
import { killedAtExit } from "./killed-at-exit.js";
import { within } from "./wait.js";

/** What to run. */
export interface ProgramCommand {
  /** Short name for failure texts. */
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  /** Added to PATH and HOME; nothing else of this process's environment is handed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** How a program ended. */
export interface ProgramExit {
  readonly code?: number;
  readonly signal?: string;
}

/** The output kept of one program, in characters; what came first is dropped. */
const outputLengthMax = 200_000;

/** A running program that never outlives the process which started it. */
export class ChildProgram {
  readonly name: string;
  readonly exited: Promise<ProgramExit>;
  readonly #child: ChildProcess;
  #output = "";
  #isRunning = true;

  constructor({ name, file, args, env, cwd }: ProgramCommand) {
    this.name = name;
    const { PATH = "", HOME = "" } = process.env;
    this.#child = spawn(file, args, {
      env: { PATH, HOME, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => this.#keep(text));
      // The pipe of a program that is killed may break; its exit tells what became of it.
      stream?.on("error", () => {});
    }
    const release = killedAtExit.add(() => this.signal("SIGKILL"));
    this.exited = new Promise((resolve) => {
      const end = (exit: ProgramExit): void => {
        this.#isRunning = false;
        release();
        resolve(exit);
      };
      this.#child.once("error", (error) => {
        this.#keep(`${error.message}\n`);
        end({});
      });
      this.#child.once("close", (code, signal) => {
        end({ ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) });
      });
    });
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** What it wrote to stdout and stderr, in order of arrival. */
  get output(): string {
    return this.#output;
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${this.name} never started`);
    return pid;
  }

  /** Sends a signal; without effect when the program has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.#isRunning) this.#child.kill(signal);
  }

  /** Ends it at once and waits until it is gone. */
  async kill(): Promise<ProgramExit> {
    this.signal("SIGKILL");
    return within(`${this.name} is gone after SIGKILL`, 10_000, this.exited);
  }

  #keep(text: string): void {
    this.#output = (this.#output + text).slice(-outputLengthMax);
  }
}
