import type { Clock } from "../core/base/clock.js";

/** A program that was found, or why it is missing. */
export type Program =
  | {
      readonly kind: "found";
      /** An absolute path, or the value of its variable. */
      readonly path: string;
      /** Two numbers or three, like "1.40.0". */
      readonly version: string;
    }
  | {
      readonly kind: "missing";
      /** What was tried, and the result: one sentence, without a full stop. */
      readonly why: string;
      /** What a user can do: one sentence, without a full stop. */
      readonly hint: string;
    };

/** Properties of an external program. */
export interface ProgramRow {
  readonly name: string;
  /** Environment variable with its path. If it is set, nothing else is searched. */
  readonly variable: string;
  /** Its name on PATH. */
  readonly command: string;
  /** Arguments that make it print its version; `--version` in most programs. */
  readonly versionArgs: readonly string[];
  /** Position of the version in its output. */
  readonly versionPattern: RegExp;
  /** Oldest version with all required features. A program that a variable names may be older. */
  readonly versionMin: string;
  readonly hint: string;
}

/** Where programs are searched and installed. */
export interface ToolEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder for installed programs. Nothing outside it is changed. */
  readonly toolsFolder: string;
  readonly clock: Clock;
  /** Takes progress messages for users, as they come: parts of lines. */
  readonly report: (text: string) => void;
}

/** Envoy. A distribution may write `1.40.0-dev`. */
export const envoyRow: ProgramRow = {
  name: "envoy",
  variable: "ENVOY_BIN",
  command: "envoy",
  versionArgs: ["--version"],
  versionPattern: /\bversion: [0-9a-f]+\/(\d+\.\d+\.\d+)/,
  versionMin: "1.40.0",
  hint: "put envoy 1.40 or newer on PATH, set ENVOY_BIN, or install python3 with venv",
};

/** Returns the version in a program's output, or undefined. */
export function parseVersion({ versionPattern }: ProgramRow, text: string): string | undefined {
  return versionPattern.exec(text)?.[1];
}

/** Reports whether a version is at least the wanted one: "1.40.0" is newer than "1.9.0". */
export function isAtLeast(version: string, wanted: string): boolean {
  const numbers = version.split(".").map(Number);
  for (const [index, least] of wanted.split(".").map(Number).entries()) {
    const number = numbers[index] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}
