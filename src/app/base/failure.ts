/** Exit codes of the program. */
export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  invalidPolicy: 3,
  stale: 4,
  unreachable: 5,
} as const;

/** Meaning of each exit code, for people and scripts. */
export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: "Done.",
  failure:
    "It failed: a test, a check or what it needs, an answer of Headgate's, or the service itself.",
  usage: "The command line, the environment or a settings file is invalid.",
  invalidPolicy: "The policy is invalid.",
  stale:
    "Something differs: `generate --check` or `fmt --check` found stale files, `diff` found a " +
    "change, `simulate` missed an objective, or `recommend` had too little data.",
  unreachable: "The admin port of Headgate, or of an Envoy, cannot be reached.",
};

/** Reason why the service could not start: a text for people with a remedy, and the exit code. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/**
 * Returns where a bug happened: the error's class and its stack without its message, because a
 * message may quote what a caller sent.
 */
export function bugTrace(thrown: unknown): { readonly error: string; readonly stack: string } {
  if (!(thrown instanceof Error)) return { error: typeof thrown, stack: "" };
  const frames = (thrown.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  const cause = thrown.cause instanceof Error ? bugTrace(thrown.cause) : undefined;
  const stack = frames.join("\n");
  if (cause === undefined) return { error: thrown.name, stack };
  return { error: `${thrown.name}: ${cause.error}`, stack: `${stack}\ncaused by\n${cause.stack}` };
}
