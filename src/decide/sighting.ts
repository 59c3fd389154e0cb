import type { TailFollower } from "./decision-tail.js";

/** A call that somebody wants to see, between its question and its answer. */
export interface Sighting {
  /** How many calls it stands for in the sketches; 0: it is none of their sample. */
  readonly callCount: number;
  readonly followers: readonly TailFollower[];
}
