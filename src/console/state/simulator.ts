import { type ReadonlySignal, signal } from "@preact/signals";
import type { SimulatorAnswer, SimulatorQuestion } from "../worker/simulator.js";
import { assetPath } from "./browser.js";

type OnProgress = (ratio: number, pass: number | undefined) => void;

/** Worker threads of the page, which are loaded on the first request. */
class Simulator {
  /** A thread without a task. */
  #idle: Worker | undefined;

  /** Sends a request to a thread. If the signal aborts, the thread is terminated. */
  ask(
    question: SimulatorQuestion,
    signal: AbortSignal,
    onProgress: OnProgress = () => {},
  ): Promise<SimulatorAnswer> {
    const worker = this.#idle ?? new Worker(assetPath("simulator"), { type: "module" });
    this.#idle = undefined;
    return new Promise((resolve, reject) => {
      const fail = (message: string): void => {
        worker.terminate();
        reject(new Error(message));
      };
      const abort = (): void => fail("canceled");
      signal.addEventListener("abort", abort);
      worker.onmessage = ({ data }: MessageEvent<SimulatorAnswer>) => {
        if (data.kind === "progress") return onProgress(data.ratio, data.pass);
        signal.removeEventListener("abort", abort);
        if (data.kind === "failed") return fail(`The simulator failed: ${data.message}`);
        if (this.#idle === undefined) this.#idle = worker;
        else worker.terminate();
        resolve(data);
      };
      worker.onerror = () => fail("The simulator could not be loaded, or ran out of memory.");
      worker.postMessage(question);
    });
  }
}

/** Worker threads of this page. */
export const simulator = new Simulator();

/** State of a task. */
type TaskState<T> =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly ratio: number; readonly pass: number | undefined }
  | { readonly kind: "finished"; readonly result: T }
  | { readonly kind: "failed"; readonly message: string };

/** A long task, of which one runs at a time. It continues while other views are open. */
export class SimulatorTask<T> {
  readonly #state = signal<TaskState<T>>({ kind: "none" });
  readonly #resultOf: (answer: SimulatorAnswer) => T | undefined;
  #end = new AbortController();

  /** @param resultOf returns the result of an answer; undefined if the task ends without one */
  constructor(resultOf: (answer: SimulatorAnswer) => T | undefined) {
    this.#resultOf = resultOf;
  }

  get state(): ReadonlySignal<TaskState<T>> {
    return this.#state;
  }

  /** Starts again. */
  async start(question: SimulatorQuestion): Promise<void> {
    this.cancel();
    const end = new AbortController();
    this.#end = end;
    const onProgress: OnProgress = (ratio, pass) => {
      this.#state.value = { kind: "running", ratio, pass };
    };
    onProgress(0, undefined);
    try {
      const result = this.#resultOf(await simulator.ask(question, end.signal, onProgress));
      this.#state.value = result === undefined ? { kind: "none" } : { kind: "finished", result };
    } catch (error) {
      if (end.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      this.#state.value = { kind: "failed", message };
    }
  }

  /** Ends the running task at once. */
  cancel(): void {
    this.#end.abort();
    if (this.#state.peek().kind === "running") this.#state.value = { kind: "none" };
  }
}
