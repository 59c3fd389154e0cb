import type { SimulatorAnswer, SimulatorQuestion } from "../worker/simulator.js";
import { assetPath } from "./browser.js";

/** Threads of the page, which are loaded when there is something to ask. */
class Simulator {
  /** One that waits for work. */
  #idle: Worker | undefined;

  /** Asks a thread; the end of the signal is the end of the thread, whatever it does. */
  ask(
    question: SimulatorQuestion,
    signal: AbortSignal,
    onProgress: (ratio: number) => void = () => {},
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
        if (data.kind === "progress") return onProgress(data.ratio);
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
