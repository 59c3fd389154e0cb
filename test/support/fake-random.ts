import { SeededRandom } from "../../src/simulate/engine/seeded-random.js";

/** Randomness from a seed: the same seed gives the same test. */
export class FakeRandom extends SeededRandom {
  constructor(seed = 1) {
    super(seed);
  }
}
