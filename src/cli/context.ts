import type { Output } from "./output.js";
import type { Terminal } from "./terminal.js";

/** What every command gets. */
export interface CommandContext {
  readonly output: Output;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Told the exit code of the command that ran. */
  readonly exitWith: (code: number) => void;
}
