import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { ChildProgram, type ProgramCommand } from "./child-program.js";

/** How much of a program's output a failed test prints, in characters. */
const printedLengthMax = 8_000;

/** Something whose output tells why a test failed. */
export interface StageOutput {
  readonly name: string;
  readonly output: string;
}

/** Everything a test has started; all of it ends with the test, whatever happened. */
export class Stage {
  #folder: string | undefined;
  #programs: ChildProgram[] = [];
  #outputs: StageOutput[] = [];
  #closers: (() => unknown)[] = [];

  /** A folder for configuration files, removed at the end. */
  get folder(): string {
    if (this.#folder === undefined) throw new Error("the stage is not open");
    return this.#folder;
  }

  async open(): Promise<void> {
    this.#programs = [];
    this.#outputs = [];
    this.#folder = await mkdtemp(join(tmpdir(), "headgate-test-"));
  }

  /** Starts a program. */
  spawn(command: ProgramCommand): ChildProgram {
    const program = new ChildProgram(command);
    this.#programs.push(program);
    this.#outputs.push(program);
    return program;
  }

  /** Prints what this wrote when a test fails, as it does of programs. */
  printAtFailure(output: StageOutput): void {
    this.#outputs.push(output);
  }

  /** Runs at the end; the last one first, and programs after all of them. */
  atEnd(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Ends everything; what could not be ended makes the test fail, after the rest has ended. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      await Promise.resolve()
        .then(close)
        .catch((thrown: unknown) => failures.push(thrown));
    }
    await Promise.all(this.#programs.map((program) => program.kill()));
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
    if (failures.length > 0) throw new AggregateError(failures, "the stage did not close");
  }

  /** What the programs wrote, for a person who reads about a failed test. */
  printOutput(): void {
    for (const { name, output } of this.#outputs) {
      const text = output.slice(-printedLengthMax).trimEnd();
      process.stderr.write(`\n--- output of ${name}\n${text}\n--- end of ${name}\n`);
    }
  }
}

/**
 * A stage for each test, or one for all tests of the file (or describe block). Call it once, at the
 * top.
 */
export function useStage(scope: "test" | "file"): Stage {
  const stage = new Stage();
  if (scope === "file") {
    beforeAll(() => stage.open());
    afterAll(() => stage.close());
  } else {
    beforeEach(() => stage.open());
    afterEach(() => stage.close());
  }
  beforeEach(({ onTestFailed }) => onTestFailed(() => stage.printOutput()));
  return stage;
}
