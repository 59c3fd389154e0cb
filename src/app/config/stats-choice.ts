import type { ListenText } from "../options/address-option.js";
import type { OptionValues } from "../options/options.js";
import type { StatTag } from "../options/stats-names.js";
import { parseTags, type statsOptionRows } from "../options/stats-options.js";
import { type Mogrifier, parseMogrifier } from "./statsd-mogrifier.js";

/** Where statistics are sent, or served, besides `/metrics`. */
export interface StatsChoice {
  /** Absent where nothing is sent. */
  readonly statsd?: StatsdChoice;
  /** Absent where the reference's series are not served. */
  readonly prometheus?: ScrapePortChoice;
}

/** A receiver of statistics, and what it understands. */
export type StatsdChoice = {
  readonly host: string;
  readonly port: number;
  readonly flushMs: number;
  readonly tags: readonly StatTag[];
} & (
  | { readonly kind: "statsd"; readonly protocol: "tcp" | "udp" }
  | { readonly kind: "dogstatsd"; readonly mogrifiers: readonly Mogrifier[] }
);

/** Where the reference's series are served. */
export interface ScrapePortChoice {
  readonly address: ListenText;
  readonly path: string;
  readonly isMilliseconds: boolean;
  readonly tags: readonly StatTag[];
}

/** The options that become a `StatsChoice`. */
export type StatsValues = Pick<
  OptionValues,
  Exclude<keyof typeof statsOptionRows, "debugHost" | "debugPort" | "debugProfiles">
>;

/** What the options say together, or everything that is wrong with that. */
type ChosenStats =
  | { readonly kind: "stats"; readonly stats: StatsChoice }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;

/** Decides what is sent where; one place at most, as in envoyproxy/ratelimit. */
export function chooseStats(values: StatsValues, env: Environment): ChosenStats {
  if (values.disableStats) return { kind: "stats", stats: {} };
  const { usePrometheus, useDogStatsd, statsdHost } = values;
  const isStatsdWanted = statsdHost !== undefined && !usePrometheus && !useDogStatsd;
  const useStatsd = values.useStatsd ?? isStatsdWanted;
  if ([useStatsd, useDogStatsd, usePrometheus].filter((one) => one).length > 1) {
    const words = "USE_STATSD, USE_DOG_STATSD, USE_PROMETHEUS: only one of them may be true";
    return { kind: "problems", problems: [words] };
  }
  const receiver = {
    host: statsdHost ?? "localhost",
    port: values.statsdPort,
    flushMs: values.statsFlushMs,
    tags: values.statTags,
  };
  if (useStatsd) {
    const statsd = { kind: "statsd", protocol: values.statsdProtocol, ...receiver } as const;
    return { kind: "stats", stats: { statsd } };
  }
  if (useDogStatsd) return chooseDogStatsd(values, { receiver, env });
  if (!usePrometheus) return { kind: "stats", stats: {} };
  const prometheus = {
    address: values.prometheusAddress,
    path: values.prometheusPath,
    isMilliseconds: values.hasMillisecondTimes,
    tags: values.statTags,
  };
  return { kind: "stats", stats: { prometheus } };
}

type Receiver = Pick<StatsdChoice, "host" | "port" | "flushMs" | "tags">;

function chooseDogStatsd(
  { dogStatsdMogrifiers }: StatsValues,
  { receiver, env }: { readonly receiver: Receiver; readonly env: Environment },
): ChosenStats {
  const mogrifiers: Mogrifier[] = [];
  const problems: string[] = [];
  for (const name of dogStatsdMogrifiers) {
    const prefix = `DOG_STATSD_MOGRIFIER_${name.toUpperCase()}`;
    const tags = parseTags(env[`${prefix}_TAGS`] ?? "");
    const parsed = parseMogrifier({
      pattern: env[`${prefix}_PATTERN`] ?? "",
      name: env[`${prefix}_NAME`] ?? "",
    });
    if (tags === undefined) problems.push(`${prefix}_TAGS must be tags like name:value,name:$1`);
    if (parsed.kind === "problem") problems.push(`${prefix}_${parsed.part} ${parsed.message}`);
    else if (tags !== undefined) mogrifiers.push({ ...parsed.value, tags });
  }
  if (problems.length > 0) return { kind: "problems", problems };
  return { kind: "stats", stats: { statsd: { kind: "dogstatsd", mogrifiers, ...receiver } } };
}
