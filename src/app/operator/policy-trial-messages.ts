import type { ParseOptions, PolicyText } from "../../policy/parse.js";
import type {
  LogReplay,
  PolicyTestReport,
  replayFormats,
  TrialProblems,
} from "../../rpc/admin/admin-parts.js";

/** A policy to be read. */
export interface TriedPolicy {
  readonly version: string;
  readonly files: readonly PolicyText[];
}

/** What the thread is started with. */
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

/** The one thing that it says. */
export type TrialMessage =
  | PolicyTestReport
  | LogReplay
  | TrialProblems
  /** @property message for people; no fault of the texts */
  | { readonly kind: "failed"; readonly message: string };
