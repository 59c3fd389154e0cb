import type { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { Terminal } from "./terminal.js";

/** Outputs of a command: data to stdout, messages to stderr. */
export interface Output {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** The process's own streams. A write blocks until its text is taken, so no exit cuts it. */
export const processOutput: Output = {
  out: (text) => writeWhole(process.stdout, text),
  err: (text) => writeWhole(process.stderr, text),
};

function writeWhole(stream: NodeJS.WriteStream, text: string): void {
  // Others (loaders) add listeners temporarily; only our own listener is sure to remain.
  if (!stream.listeners("error").includes(endQuietly)) stream.on("error", endQuietly);
  stream.write(text.endsWith("\n") ? text : `${text}\n`);
}

/** If a reader closes the pipe early (`headgate check ... | head`), that is not a failure. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
}

/** Context of every command. */
export interface CommandContext {
  readonly output: Output;
  /** Environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Envoy's API if it was read before; otherwise a command that needs it reads it. */
  readonly envoyApi?: EnvoyApi | undefined;
  /** Takes the exit code of the command that ran. */
  readonly exitWith: (code: number) => void;
}
