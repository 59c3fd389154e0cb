import { addressOption } from "./address-option.js";
import {
  choiceOption,
  durationOption,
  type IgnoredOptionRow,
  type OptionRow,
  type OptionText,
  optionalSwitchOption,
  optionalTextOption,
  type ParsedOption,
  switchOption,
  textOption,
  wholeNumberOption,
} from "./option.js";
import { type StatTag, tagText } from "./stats-names.js";

const portMax = 65_535;

/** Maximum number of tags. */
export const tagsMax = 20;

/** Maximum length of a tag with its value, in characters. */
export const tagLengthMax = 200;

/** The port for debugging by people. */
export const debugOptionRows = {
  debugHost: textOption({
    env: "DEBUG_HOST",
    valueName: "ADDRESS",
    defaultValue: "127.0.0.1",
    docs:
      "The address of the debug port: `/stats`, `/rlconfig`, `/debug/fleet`. By " +
      "default it is loopback (envoyproxy/ratelimit binds all addresses). Empty: " +
      "no debug port.",
  }),
  debugPort: wholeNumberOption({
    env: "DEBUG_PORT",
    range: [0, portMax],
    defaultValue: 6070,
    docs:
      "The debug port; 0 picks a free port. If it is in use, Headgate logs a warning " +
      "and runs without it.",
  }),
  debugProfiles: switchOption({
    env: "HEADGATE_DEBUG_PROFILES",
    defaultValue: false,
    docs:
      "Whether operators of the admin API, in all domains, may take CPU profiles " +
      "and heap snapshots on the debug port. Only if DEBUG_HOST is loopback.",
  }),
} as const;

/** Statistics for other systems. */
export const statsOptionRows = {
  usePrometheus: switchOption({
    env: "USE_PROMETHEUS",
    defaultValue: false,
    docs:
      "Serves the series of envoyproxy/ratelimit (`ratelimit_service_...`) at " +
      "PROMETHEUS_ADDR, followed by Headgate's own. `/metrics` on the HTTP port is " +
      "always served.",
  }),
  prometheusAddress: addressOption({
    env: "PROMETHEUS_ADDR",
    defaultText: ":9090",
    defaultValue: { host: "0.0.0.0", port: 9090 },
    docs: "The address of this endpoint, `host:port`; `:port` binds all addresses.",
  }),
  prometheusPath: pathOption({
    env: "PROMETHEUS_PATH",
    defaultText: "/metrics",
    docs: "The path of this endpoint.",
  }),
  hasMillisecondTimes: switchOption({
    env: "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
    defaultValue: false,
    docs:
      "Whether `ratelimit_service_response_time_seconds` is in milliseconds, for " +
      "dashboards that expect them.",
  }),
  useStatsd: optionalSwitchOption({
    env: "USE_STATSD",
    docs:
      "Sends the statistics of envoyproxy/ratelimit to StatsD. Default: on if " +
      "STATSD_HOST is set and no other USE_ name is true.",
  }),
  useDogStatsd: switchOption({
    env: "USE_DOG_STATSD",
    defaultValue: false,
    docs: "Sends them to a DogStatsD, over UDP and with tags.",
  }),
  statsdHost: optionalTextOption({
    env: "STATSD_HOST",
    valueName: "HOST",
    docs: "The host of StatsD or DogStatsD, resolved for each flush. Default: localhost.",
  }),
  statsdPort: wholeNumberOption({
    env: "STATSD_PORT",
    range: [1, portMax],
    defaultValue: 8125,
    docs: "The port of StatsD or DogStatsD.",
  }),
  statsdProtocol: choiceOption<"tcp" | "udp">({
    env: "STATSD_PROTOCOL",
    choices: ["tcp", "udp"],
    defaultValue: "tcp",
    docs: "The protocol for StatsD; TCP by default, as in envoyproxy/ratelimit.",
  }),
  dogStatsdMogrifiers: namesOption({
    env: "USE_DOG_STATSD_MOGRIFIERS",
    docs:
      "Names of rules that turn parts of a statistic's name into tags. The first rule whose " +
      "`DOG_STATSD_MOGRIFIER_<name>_PATTERN` matches applies: `_NAME` is the new name and " +
      "`_TAGS` the tags, in which `$1` is the first group.",
  }),
  statTags: tagsOption({
    env: "EXTRA_TAGS",
    docs: "Additional tags or labels of all these statistics: `name:value,name:value`.",
  }),
  statsFlushMs: durationOption({
    env: "STATS_FLUSH_INTERVAL",
    defaultText: "10s",
    defaultValue: 10_000,
    minMs: 100,
    maxMs: 3_600_000,
    docs: "How often StatsD or DogStatsD gets the changes.",
  }),
  disableStats: switchOption({
    env: "DISABLE_STATS",
    defaultValue: false,
    docs: "Turns all of these off, whatever the other settings are; `/metrics` and `/stats` stay.",
  }),
} as const;

/** Settings of envoyproxy/ratelimit for statistics, and why they have no effect here. */
export const statsIgnoredRows: readonly IgnoredOptionRow[] = [
  {
    names: ["PROMETHEUS_MAPPER_YAML"],
    reason:
      "series are created with their labels, `domain`, `key1` and `key2`, as its " +
      "default mapping has them, and no names are parsed",
  },
  {
    names: ["LOCAL_CACHE_SIZE_IN_BYTES"],
    reason:
      "the over-limit cache has room for all live keys, so it needs no size and " +
      "has no `ratelimit.localcache` statistic",
  },
  {
    names: ["GOSTATS_FLUSH_INTERVAL_SECONDS", "GOSTATS_LOGGING_SINK_DISABLED"],
    reason: "`STATS_FLUSH_INTERVAL` is the only interval, and statistics are never logged",
  },
];

function pathOption(row: OptionText & { readonly defaultText: string }): OptionRow<string> {
  const parse = (text: string): ParsedOption<string> => {
    if (/^\/[\w\-./~]{0,199}$/.test(text)) return { kind: "value", value: text };
    return { kind: "problem", message: "must be a path like /metrics" };
  };
  const defaultValue = row.defaultText;
  return { ...row, valueName: "PATH", defaultValue, parse };
}

/** Maximum number of rules that create tags. */
export const mogrifiersMax = 100;

function namesOption(row: OptionText): OptionRow<readonly string[]> {
  const parse = (text: string): ParsedOption<readonly string[]> => {
    const names = text === "" ? [] : text.split(",").map((name) => name.trim());
    const isRight = names.every((name) => /^\w{1,64}$/.test(name));
    if (isRight && names.length <= mogrifiersMax) return { kind: "value", value: names };
    const message = `must be at most ${mogrifiersMax} names of letters, digits and _: A,B`;
    return { kind: "problem", message };
  };
  return { ...row, valueName: "NAMES", defaultText: "", defaultValue: [], parse };
}

function tagsOption(row: OptionText): OptionRow<readonly StatTag[]> {
  const parse = (text: string): ParsedOption<readonly StatTag[]> => {
    const tags = parseTags(text);
    if (tags !== undefined) return { kind: "value", value: tags };
    const message = `must be at most ${tagsMax} tags like name:value,name:value`;
    return { kind: "problem", message };
  };
  return { ...row, valueName: "TAGS", defaultText: "", defaultValue: [], parse };
}

/** Parses `name:value,name:value`. Undefined for other texts. A value may contain colons. */
export function parseTags(text: string): readonly StatTag[] | undefined {
  if (text === "") return [];
  const parts = text.split(",");
  if (parts.length > tagsMax) return undefined;
  const tags: StatTag[] = [];
  for (const part of parts) {
    const [, name, value] = /^\s*([\w\-./]+)\s*:(.+)$/.exec(part) ?? [];
    if (name === undefined || value === undefined || part.length > tagLengthMax) return undefined;
    tags.push({ name, value: tagText(value.trim()) });
  }
  return tags;
}
