/** A gate over the sigmoid's reject probability. */
export interface GateSettings {
  /** Below it everything passes; less than `closeAboveRatio`. */
  readonly openBelowRatio: number;
  /** Above it nothing passes. */
  readonly closeAboveRatio: number;
  /** The share that passes at `closeAboveRatio`. */
  readonly passAtCloseRatio: number;
}

/** What a policy that says nothing has. */
export const defaultGateSettings: GateSettings = {
  openBelowRatio: 0.4,
  closeAboveRatio: 0.8,
  passAtCloseRatio: 0.1,
};

/** How far below `closeAboveRatio` a closed gate opens again, as a share of the band. */
const reopenBandShare = 0.25;

/** A gate's states, as metrics and logs name them. */
export const gateStates = ["open", "limiting", "closed"] as const;

/** What is left of a gate's input after a second in which nothing says that it is as high. */
const inputKeptPerSecond = 0.7;

/** Everything passes, a share does, or nothing. */
export type GateState = (typeof gateStates)[number];

/**
 * What is wrong with thresholds, for a person; undefined for good ones. All are ratios from 0 to 1,
 * and the gate has to open below where it closes.
 */
export function gateProblem(settings: GateSettings): string | undefined {
  for (const [name, ratio] of Object.entries(settings)) {
    if (!(ratio >= 0 && ratio <= 1)) return `${name} is not from 0 to 1`;
  }
  const isOrdered = settings.openBelowRatio < settings.closeAboveRatio;
  return isOrdered ? undefined : "openBelowRatio is not below closeAboveRatio";
}

/**
 * What a gate takes in that is answered far from the queue it looks at. While such a gate is closed
 * nobody comes to that queue any more, and it says within a moment that nobody waits: were that
 * believed at once, everybody would come at once, and the gate close again. So what it took in
 * fades, and those who come on the way from closed to open say what is true.
 *
 * Example: 1, and then nothing: by the defaults closed, then 0.7 and 0.49, which pass 0.325 and
 * 0.798, then 0.34, which is open.
 *
 * @param inputRatio what the queue says, 0 to 1; once a second
 */
export function fadingInput({ state, inputRatio: before }: Gate, inputRatio: number): number {
  return state === "open" ? inputRatio : Math.max(inputRatio, inputKeptPerSecond * before);
}

/**
 * A gate in front of everything dearer. Its input is the reject probability that the sigmoid of the
 * estimated wait has for the queue as it stands; never a measured ratio of refusals, since the
 * gate's own would be among them, and it would keep itself shut.
 *
 * Below `openBelowRatio` all pass. From there up to `closeAboveRatio` the share that passes falls
 * on a straight line from 1 to `passAtCloseRatio`; above, nothing passes. The share is continuous
 * but for the last step, so hysteresis is there alone: a closed gate opens again, on the line, a
 * quarter of the band (`reopenBandShare`) below where it closed.
 *
 * Example: by the defaults 0.6 passes 0.55; after 0.81 it is closed, still at 0.75, and at 0.7 it
 * passes 0.325.
 */
export class Gate {
  #settings: GateSettings;
  #inputRatio = 0;
  #state: GateState = "open";
  #passRatio = 1;

  /** @param settings such that `gateProblem` has nothing to say */
  constructor(settings: GateSettings = defaultGateSettings) {
    this.#settings = settings;
  }

  get settings(): GateSettings {
    return this.#settings;
  }

  get state(): GateState {
    return this.#state;
  }

  /** The input that it stands by. */
  get inputRatio(): number {
    return this.#inputRatio;
  }

  /** The share that passes now. */
  get passRatio(): number {
    return this.#passRatio;
  }

  /** Takes a new input, once a second. @param inputRatio reject probability, 0 to 1 */
  update(inputRatio: number): void {
    this.#inputRatio = inputRatio;
    this.#state = this.#nextState();
    this.#passRatio = this.#ratioOf(this.#state);
  }

  /** Stands as another gate does, which has had another past. @param inputRatio its last input */
  follow(inputRatio: number, state: GateState): void {
    this.#inputRatio = inputRatio;
    this.#state = state;
    this.#passRatio = this.#ratioOf(state);
  }

  /**
   * Changes thresholds while it runs; they hold at once, for the last input. What `gateProblem`
   * finds fault with changes nothing, and is answered.
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
