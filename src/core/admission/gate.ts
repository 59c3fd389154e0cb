/** Thresholds of a gate on the sigmoid's reject probability. */
export interface GateSettings {
  /** Below this probability, all requests pass; less than `closeAboveRatio`. */
  readonly openBelowRatio: number;
  /** Above this probability, no request passes. */
  readonly closeAboveRatio: number;
  /** The share that passes at `closeAboveRatio`. */
  readonly passAtCloseRatio: number;
}

/** Settings if a policy sets none. */
export const defaultGateSettings: GateSettings = {
  openBelowRatio: 0.4,
  closeAboveRatio: 0.8,
  passAtCloseRatio: 0.1,
};

/** How far below `closeAboveRatio` a closed gate opens again, as a share of the band. */
const reopenBandShare = 0.25;

/** A gate's states, as metrics and logs name them. */
export const gateStates = ["open", "limiting", "closed"] as const;

/** Part of a gate's input that is kept for a second in which the queue reports less. */
const inputKeptPerSecond = 0.7;

/** All requests pass, a share of them, or none. */
export type GateState = (typeof gateStates)[number];

/**
 * Returns what is wrong with thresholds, for a person; undefined if they are valid. All are ratios
 * from 0 to 1, and the gate must open below the ratio at which it closes.
 */
export function gateProblem(settings: GateSettings): string | undefined {
  for (const [name, ratio] of Object.entries(settings)) {
    if (!(ratio >= 0 && ratio <= 1)) return `${name} is not from 0 to 1`;
  }
  const isOrdered = settings.openBelowRatio < settings.closeAboveRatio;
  return isOrdered ? undefined : "openBelowRatio is not below closeAboveRatio";
}

/**
 * Returns the input of a gate that is far from the queue it watches. While such a gate is closed,
 * no request reaches the queue, which soon reports that none waits. If the gate believed that at
 * once, all requests would arrive at once, and it would close again. So its input decays, and the
 * requests that pass while it opens step by step show the true state of the queue.
 *
 * Example: 1, and then 0: by the defaults closed, then 0.7 and 0.49, which pass 0.325 and 0.798,
 * then 0.34, which is open.
 *
 * @param inputRatio reject probability of the queue, 0 to 1; once a second
 */
export function fadingInput({ state, inputRatio: before }: Gate, inputRatio: number): number {
  return state === "open" ? inputRatio : Math.max(inputRatio, inputKeptPerSecond * before);
}

/**
 * A gate before all checks that cost more. Its input is the reject probability that the sigmoid of
 * the estimated wait gives for the present queue. It is never a measured ratio of refusals: that
 * would include the gate's own refusals, and the gate would keep itself closed.
 *
 * Below `openBelowRatio` all requests pass. From there to `closeAboveRatio`, the share that passes
 * falls linearly from 1 to `passAtCloseRatio`. Above, no request passes. Only this last step is not
 * continuous, so only it has hysteresis: a closed gate opens again, on the line, a quarter of the
 * band (`reopenBandShare`) below `closeAboveRatio`.
 *
 * Example with the defaults: an input of 0.6 passes 0.55. After 0.81 the gate is closed, still at
 * 0.75, and at 0.7 it passes 0.325.
 */
export class Gate {
  #settings: GateSettings;
  #inputRatio = 0;
  #state: GateState = "open";
  #passRatio = 1;

  /** @param settings valid, so that `gateProblem` returns undefined */
  constructor(settings: GateSettings = defaultGateSettings) {
    this.#settings = settings;
  }

  get settings(): GateSettings {
    return this.#settings;
  }

  get state(): GateState {
    return this.#state;
  }

  /** The current input. */
  get inputRatio(): number {
    return this.#inputRatio;
  }

  /** The share of requests that pass now. */
  get passRatio(): number {
    return this.#passRatio;
  }

  /** Takes a new input, once a second. @param inputRatio reject probability, 0 to 1 */
  update(inputRatio: number): void {
    this.#inputRatio = inputRatio;
    this.#state = this.#nextState();
    this.#passRatio = this.#ratioOf(this.#state);
  }

  /** Copies the state of another gate with a different history. @param inputRatio its last input */
  follow(inputRatio: number, state: GateState): void {
    this.#inputRatio = inputRatio;
    this.#state = state;
    this.#passRatio = this.#ratioOf(state);
  }

  /**
   * Changes thresholds at run time. They apply at once, to the last input. If `gateProblem` finds a
   * problem, nothing changes and the problem is returned.
   */
  change(settings: GateSettings): string | undefined {
    const problem = gateProblem(settings);
    if (problem !== undefined) return problem;
    this.#settings = settings;
    this.update(this.#inputRatio);
    return undefined;
  }

  /** @param draw uniform in [0, 1) */
  passes(draw: number): boolean {
    return draw < this.#passRatio;
  }

  #nextState(): GateState {
    const { openBelowRatio, closeAboveRatio } = this.#settings;
    if (this.#inputRatio < openBelowRatio) return "open";
    if (this.#inputRatio > closeAboveRatio) return "closed";
    const reopenRatio = closeAboveRatio - reopenBandShare * (closeAboveRatio - openBelowRatio);
    return this.#state === "closed" && this.#inputRatio > reopenRatio ? "closed" : "limiting";
  }

  #ratioOf(state: GateState): number {
    if (state !== "limiting") return state === "open" ? 1 : 0;
    const { openBelowRatio, closeAboveRatio, passAtCloseRatio } = this.#settings;
    const depthRatio = (this.#inputRatio - openBelowRatio) / (closeAboveRatio - openBelowRatio);
    return 1 - depthRatio * (1 - passAtCloseRatio);
  }
}
