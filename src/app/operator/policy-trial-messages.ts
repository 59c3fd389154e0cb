import type { ParseOptions, PolicyText } from "../../policy/parse.js";
import type { ParseProblems } from "../../policy/problems/problem-log.js";
import type { LogReplay, PolicyTestReport, replayFormats } from "../../rpc/admin/admin-parts.js";

/** A policy to try, as text. */
export interface TriedPolicy {
  readonly version: string;
  readonly files: readonly PolicyText[];
}

/** The input of the worker thread. */
export type TrialInput = { readonly options: ParseOptions } & (
  | {
      readonly kind: "test";
      readonly policy: TriedPolicy;
      readonly tests: readonly PolicyText[];
    }
  | {
      readonly kind: "replay";
      readonly active: TriedPolicy;
      readonly candidate: TriedPolicy | undefined;
      readonly log: Uint8Array;
      readonly format: (typeof replayFormats)[number];
    }
);

/** The only message that the worker thread sends. */
export type TrialMessage =
  | PolicyTestReport
  | LogReplay
  | ParseProblems
  /** @property message for people; the cause is not in the texts */
  | { readonly kind: "failed"; readonly message: string };
