import type { Output } from "./output.js";

/** What every command gets. */
export interface CommandContext {
  readonly output: Output;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told the exit code of the command that ran. */
  readonly exitWith: (code: number) => void;
}
