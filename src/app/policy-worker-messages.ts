import type { Rule } from "../core/limit.js";
import type { ParsedPolicy, PolicyText } from "../policy/parse.js";

/** What the worker is started with. */
export interface WorkerInput {
  readonly sources: readonly PolicyText[];
}

/** What the worker says: one answer first, then one chunk of rules for every `next` it is told. */
export type WorkerMessage =
  | Extract<ParsedPolicy, { kind: "problems" }>
  | {
      readonly kind: "parsed";
      readonly domains: readonly string[];
      readonly ruleCount: number;
    }
  | { readonly kind: "rules"; readonly rules: readonly Rule[] };

/** What the worker is told: to send the next chunk. */
export const nextChunk = "next";

/** Rules of one chunk: about a tenth of a millisecond of the event loop. */
export const chunkRulesMax = 256;
