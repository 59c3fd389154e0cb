import { exitCodes } from "../../app/base/failure.js";

/**
 * Why a command could not do what it was told, in words that say what to do next; without words
 * where all was told already.
 */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What is wrong with the command line, as a failure of usage. */
export function usageFailure(message: string): CommandFailure {
  return new CommandFailure(exitCodes.usage, message);
}
