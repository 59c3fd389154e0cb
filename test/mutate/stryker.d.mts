import type { Mutant, Place } from "./sample.js";

/** What Stryker says of a mutant: its status, and its places, which count from 1 here. */
export interface Result {
  readonly fileName: string;
  readonly location: { readonly start: Place; readonly end: Place };
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
}

/** All mutants that Stryker makes of some files, in the order of files and places. */
export function findMutants(
  files: readonly { readonly path: string; readonly text: string }[],
): Promise<readonly Omit<Mutant, "original">[]>;

/** Runs Stryker in the working directory; fails when the tests fail without a mutant. */
export function runMutants(options: Readonly<Record<string, unknown>>): Promise<readonly Result[]>;
