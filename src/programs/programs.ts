import type { Clock } from "../core/base/clock.js";

/** The programs of others that the demo and the tests run. */
export type ProgramName =
  | "envoy"
  | "redis"
  | "valkey"
  | "helm"
  | "hadolint"
  | "promtool"
  | "chromium";

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

/** How a program is known. */
export interface ProgramRow {
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

const serverVersion = /\bserver v=(\d+\.\d+\.\d+)\b/;

/** The row of each program. */
export const programRows: Readonly<Record<ProgramName, ProgramRow>> = {
  envoy: {
    variable: "ENVOY_BIN",
    command: "envoy",
    versionArgs: ["--version"],
    versionPattern: /\bversion: [0-9a-f]+\/(\d+\.\d+\.\d+)/,
    versionMin: "1.40.0",
    hint: "put envoy 1.40 or newer on PATH, name one in ENVOY_BIN, or install python3 with venv",
  },
  redis: {
    variable: "REDIS_SERVER_BIN",
    command: "redis-server",
    versionArgs: ["--version"],
    versionPattern: serverVersion,
    versionMin: "6.2.0",
    hint: "put redis-server on PATH, name one in REDIS_SERVER_BIN, or install python3 with venv",
  },
  valkey: {
    variable: "VALKEY_SERVER_BIN",
    command: "valkey-server",
    versionArgs: ["--version"],
    versionPattern: serverVersion,
    versionMin: "7.2.0",
    hint: "put valkey-server on PATH, name one in VALKEY_SERVER_BIN, or install python3 with venv",
  },
  helm: {
    variable: "HELM_BIN",
    command: "helm",
    versionArgs: ["version", "--short"],
    // One that was built from its module says `v3.19`.
    versionPattern: /\bv(\d+\.\d+(?:\.\d+)?)\b/,
    versionMin: "3.14.0",
    hint: "put helm 3.14 or newer on PATH, name one in HELM_BIN, or install python3 with venv",
  },
  hadolint: {
    variable: "HADOLINT_BIN",
    command: "hadolint",
    versionArgs: ["--version"],
    versionPattern: /\bDockerfile Linter (\d+\.\d+\.\d+)/,
    versionMin: "2.12.0",
    hint: "put hadolint on PATH, name one in HADOLINT_BIN, or install python3 with venv",
  },
  promtool: {
    variable: "PROMTOOL_BIN",
    command: "promtool",
    versionArgs: ["--version"],
    versionPattern: /\bpromtool, version (\d+\.\d+\.\d+)/,
    versionMin: "2.42.0",
    hint: "put promtool 2.42 or newer on PATH, or name one in PROMTOOL_BIN",
  },
  chromium: {
    variable: "CHROMIUM_BIN",
    command: "chromium-headless-shell",
    versionArgs: ["--version"],
    versionPattern: /\b(?:Chromium|Chrome) (?:for Testing )?(\d+\.\d+\.\d+)/,
    versionMin: "120.0.0",
    hint: "put chromium-headless-shell on PATH, or name a Chromium in CHROMIUM_BIN",
  },
};

/** All programs, in the order in which they are looked for. */
export const programNames: readonly ProgramName[] = [
  "redis",
  "valkey",
  "envoy",
  "helm",
  "hadolint",
  "promtool",
  "chromium",
];

/**
 * The version in what a program prints when it is asked for it, or undefined.
 * Envoy: `envoy  version: 9e55.../1.40.0/Clean/RELEASE/BoringSSL` (a distribution may write
 * `1.40.0-dev`); Redis: `Redis server v=7.0.15 sha=...`; Valkey: `Valkey server v=9.1.2 sha=...`;
 * Helm: `v3.19.5+g...`; hadolint: `Haskell Dockerfile Linter 2.15.1`; promtool: `promtool, version
 * 2.42.0+ds (branch: ...`; Chromium: `Chromium 156.0.8078.108 built on Debian GNU/Linux 12`.
 */
export function parseVersion(name: ProgramName, text: string): string | undefined {
  return programRows[name].versionPattern.exec(text)?.[1];
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
