import { setFlagsFromString } from "node:v8";

/**
 * Makes new objects begin among the young ones, always. To be called before anything is decided.
 *
 * V8 watches where objects are made, and moves a place whose objects lived on for a while (those of
 * calls that were in flight when the collector came, right after the start) to the old ones for
 * good. There a call's objects, which are dead within a millisecond, wait for a round over
 * everything, and so does all that they lead to: that cost a third of a decision, in three of four
 * processes.
 *
 * Source: V8's flag `--allocation-site-pretenuring`, on by default.
 */
export function keepNewObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
