import { type QueueState, sigmoidRejectRatio } from "../admission/estimated-wait.js";
import { fadingInput, Gate, type GateState } from "../admission/gate.js";
import type { ServiceLoopSettings } from "./feedback-settings.js";

/** Requests that wait for a service, over all replicas. */
export interface ServiceQueue {
  readonly waitingCount: number;
  /** How long a request is in flight. Undefined: not known. */
  readonly serviceMs: number | undefined;
}

/** How long a report of the queue is valid, in milliseconds. */
const queueMsMax = 3_000;

/** The reject probability of a service by its expected wait, and the gate over that. */
export class FeedbackPressure {
  readonly #settings: Pick<ServiceLoopSettings, "sigmoid" | "gate">;
  readonly #gate: Gate | undefined;
  #queue: (ServiceQueue & { readonly atMs: number }) | undefined;

  /** @param before the gate of an earlier leader; a closed one stays so within its hysteresis */
  constructor(
    settings: Pick<ServiceLoopSettings, "sigmoid" | "gate">,
    before: GateState | undefined,
  ) {
    this.#settings = settings;
    this.#gate = settings.gate && new Gate(settings.gate);
    if (before === "closed") this.#gate?.update(1);
  }

  /** As of the last update. Open if there is none. */
  get gate(): GateState {
    return this.#gate?.state ?? "open";
  }

  /** Takes the number of requests that wait, as counted now. */
  noteQueue(queue: ServiceQueue, nowMs: number): void {
    this.#queue = { ...queue, atMs: nowMs };
  }

  /**
   * Call it once a second. If the queue was not reported lately, only requests in flight above the
   * limit count as waiting: a closed gate must not stay closed because no requests arrive any more.
   *
   * @returns the part of requests to refuse, 0 to 1
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
