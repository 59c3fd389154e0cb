import type { Rule } from "../core/limit.js";
import type { ParsedPolicy, ParseOptions, PolicyText } from "../policy/parse.js";
import type { DiscoveredResource } from "../rpc/rate-limit-config.js";

/** What a policy is made of: texts, or the messages of a control plane. */
export type PolicyInput =
  | { readonly kind: "texts"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "resources"; readonly resources: readonly DiscoveredResource[] };

/** What the worker is started with. */
export interface WorkerInput {
  readonly policy: PolicyInput;
  readonly options: ParseOptions;
}

/** What the worker says: one answer first, then one chunk of rules for every `next` it is told. */
export type WorkerMessage =
  | Extract<ParsedPolicy, { kind: "problems" }>
  /** The messages cannot be turned into texts. */
  | { readonly kind: "unreadable"; readonly message: string }
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
