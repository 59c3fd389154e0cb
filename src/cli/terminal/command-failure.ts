import { exitCodes } from "../../app/base/failure.js";

/**
 * Failure of a command, with a message about what to do next. The message is empty if everything
 * has already been printed.
 */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns a usage failure for a wrong command line. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(exitCodes.usage, message);
}
