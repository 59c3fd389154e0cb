import type { ListenText } from "../options/address-option.js";
import type { OptionValues } from "../options/options.js";
import type { StatTag } from "../options/stats-names.js";
import { parseTags, type statsOptionRows } from "../options/stats-options.js";
import { type Mogrifier, parseMogrifier } from "./statsd-mogrifier.js";

/** Where statistics are sent or served besides `/metrics`. */
export interface StatsChoice {
  /** Absent if nothing is sent. */
  readonly statsd?: StatsdChoice;
  /** Absent if the series of envoyproxy/ratelimit are not served. */
  readonly prometheus?: ScrapePortChoice;
}

/** A receiver of statistics, and its protocol. */
export type StatsdChoice = {
  readonly host: string;
  readonly port: number;
  readonly flushMs: number;
  readonly tags: readonly StatTag[];
} & (
  | { readonly kind: "statsd"; readonly protocol: "tcp" | "udp" }
  | { readonly kind: "dogstatsd"; readonly mogrifiers: readonly Mogrifier[] }
);

/** Port that serves the series of envoyproxy/ratelimit. */
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

type Environment = Readonly<Record<string, string | undefined>>;

/** Chooses at most one destination, as in envoyproxy/ratelimit. */
export function chooseStats(
  values: StatsValues,
  env: Environment,
  problems: string[],
): StatsChoice {
  if (values.disableStats) return {};
  const { usePrometheus, useDogStatsd, statsdHost } = values;
  const isStatsdWanted = statsdHost !== undefined && !usePrometheus && !useDogStatsd;
  const useStatsd = values.useStatsd ?? isStatsdWanted;
  if ([useStatsd, useDogStatsd, usePrometheus].filter((one) => one).length > 1) {
    problems.push("USE_STATSD, USE_DOG_STATSD, USE_PROMETHEUS: only one of them may be true");
    return {};
  }
  const receiver = {
    host: statsdHost ?? "localhost",
    port: values.statsdPort,
    flushMs: values.statsFlushMs,
    tags: values.statTags,
  };
  if (useStatsd) {
    return { statsd: { kind: "statsd", protocol: values.statsdProtocol, ...receiver } };
  }
  if (useDogStatsd) {
    const mogrifiers = readMogrifiers(values, env, problems);
    return { statsd: { kind: "dogstatsd", mogrifiers, ...receiver } };
  }
  if (!usePrometheus) return {};
  const prometheus = {
    address: values.prometheusAddress,
    path: values.prometheusPath,
    isMilliseconds: values.hasMillisecondTimes,
    tags: values.statTags,
  };
  return { prometheus };
}

function readMogrifiers(
  { dogStatsdMogrifiers }: StatsValues,
  env: Environment,
  problems: string[],
): readonly Mogrifier[] {
  const mogrifiers: Mogrifier[] = [];
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
  return mogrifiers;
}
