import type { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { Output } from "./output.js";
import type { Terminal } from "./terminal.js";

/** What every command gets. */
export interface CommandContext {
  readonly output: Output;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Envoy's API where it was read before; otherwise a command reads it that needs it. */
  readonly envoyApi?: EnvoyApi | undefined;
  /** Told the exit code of the command that ran. */
  readonly exitWith: (code: number) => void;
}
