import { type QueueState, sigmoidRejectRatio } from "../admission/estimated-wait.js";
import { fadingInput, Gate, type GateState } from "../admission/gate.js";
import type { ServiceLoopSettings } from "./feedback-settings.js";

/** Requests that wait before a service, over all replicas. */
export interface ServiceQueue {
  readonly waitingCount: number;
  /** How long a request is in work; undefined: not known. */
  readonly serviceMs: number | undefined;
}

/** How long a word on the queue holds, in milliseconds. */
const queueMsMax = 3_000;

/** What the wait before a service says: its reject probability, and the gate over that. */
export class FeedbackPressure {
  readonly #settings: Pick<ServiceLoopSettings, "sigmoid" | "gate">;
  readonly #gate: Gate | undefined;
  #queue: (ServiceQueue & { readonly atMs: number }) | undefined;

  /** @param before the gate as somebody else left it; a closed one stays so in its hysteresis */
  constructor(
    settings: Pick<ServiceLoopSettings, "sigmoid" | "gate">,
    before: GateState | undefined,
  ) {
    this.#settings = settings;
    this.#gate = settings.gate && new Gate(settings.gate);
    if (before === "closed") this.#gate?.update(1);
  }

  /** As of the last update; open where there is none. */
  get gate(): GateState {
    return this.#gate?.state ?? "open";
  }

  /** Requests that wait, as somebody counted them now. */
  noteQueue(queue: ServiceQueue, nowMs: number): void {
    this.#queue = { ...queue, atMs: nowMs };
  }

  /**
   * Once a second. Where nobody has told of the queue lately, only what is in work above the limit
   * waits: a closed gate must not stay so because nobody asks any more.
   *
   * @returns the share of requests to refuse, 0 to 1
   */
  update(fleet: Omit<QueueState, "waitingCount">, nowMs: number): number {
    const { sigmoid } = this.#settings;
    const queue = this.#queue;
    const isKnown = queue !== undefined && nowMs - queue.atMs <= queueMsMax;
    const waitingCount = isKnown ? queue.waitingCount : 0;
    const serviceMs = (isKnown ? queue.serviceMs : undefined) ?? fleet.serviceMs;
    const state = { ...fleet, waitingCount, serviceMs };
    const now = sigmoid === undefined ? 0 : sigmoidRejectRatio(sigmoid, state);
    const ratio = this.#gate === undefined ? now : fadingInput(this.#gate, now);
    this.#gate?.update(ratio);
    return ratio;
  }
}
