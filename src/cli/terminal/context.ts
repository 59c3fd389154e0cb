import type { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { Terminal } from "./terminal.js";

/** Where a command writes: data to stdout, talk to stderr. */
export interface Output {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** The process's own streams. Writing waits until the text is taken, so that no exit cuts it. */
export const processOutput: Output = {
  out: (text) => writeWhole(process.stdout, text),
  err: (text) => writeWhole(process.stderr, text),
};

function writeWhole(stream: NodeJS.WriteStream, text: string): void {
  // Others listen too, once or for a while (loaders do): only our own listener is sure to stay.
  if (!stream.listeners("error").includes(endQuietly)) stream.on("error", endQuietly);
  stream.write(text.endsWith("\n") ? text : `${text}\n`);
}

/**
 * A reader that has seen enough closes the pipe (`headgate check ... | head`): no failure of ours.
 */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

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
