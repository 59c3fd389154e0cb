import { type ReadonlySignal, signal } from "@preact/signals";
import type { SimulatorAnswer, SimulatorQuestion } from "../worker/simulator.js";
import { assetPath } from "./browser.js";

type OnProgress = (ratio: number, pass: number | undefined) => void;

/** Threads of the page, which are loaded when there is something to ask. */
class Simulator {
  /** One that waits for work. */
  #idle: Worker | undefined;

  /** Asks a thread; the end of the signal is the end of the thread, whatever it does. */
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

/** The threads of this page. */
export const simulator = new Simulator();

/** What became of a task. */
type TaskState<T> =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly ratio: number; readonly pass: number | undefined }
  | { readonly kind: "finished"; readonly result: T }
  | { readonly kind: "failed"; readonly message: string };

/** Something long, one at a time; it goes on while other views are looked at. */
export class SimulatorTask<T> {
  readonly #state = signal<TaskState<T>>({ kind: "none" });
  readonly #resultOf: (answer: SimulatorAnswer) => T | undefined;
  #end = new AbortController();

  /** @param resultOf what an answer says; undefined for one that ends it without a result */
  constructor(resultOf: (answer: SimulatorAnswer) => T | undefined) {
    this.#resultOf = resultOf;
  }

  get state(): ReadonlySignal<TaskState<T>> {
    return this.#state;
  }

  /** Begins anew. */
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

  /** Ends what runs, whatever it does. */
  cancel(): void {
    this.#end.abort();
    if (this.#state.peek().kind === "running") this.#state.value = { kind: "none" };
  }
}
