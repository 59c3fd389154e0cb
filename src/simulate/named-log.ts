import { parseTimestampUs } from "../core/base/timestamp.js";
import { type UsageCount, usageCountMax } from "../core/budgets/usage.js";
import { modelCharsMax } from "../core/usage/usage-fields.js";
import {
  callerAddress,
  isLimited,
  type LineReader,
  type LoggedRequest,
  type LoggedUsage,
  readTiming,
  saidText,
  type WantedFacts,
} from "./logged-request.js";

/** Names that logs give to the parts of a request, the first one found counts. */
const defaultNames = {
  time: ["start_time", "time", "timestamp", "@timestamp", "ts"],
  method: ["method", ":method", "request_method"],
  path: ["x-envoy-origin-path", "x-envoy-original-path", "path", ":path", "request_path", "uri"],
  authority: [":authority", "authority", "host"],
  flags: ["response_flags", "flags"],
  "x-forwarded-for": ["x_forwarded_for", "x-forwarded-for"],
  "remote-address": ["downstream_remote_address", "remote_address", "client_ip"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The names of what `WantedFacts.timing` is about. */
const timingNames = {
  duration: ["duration", "duration_ms"],
  status: ["response_code", "status", "status_code"],
  "upstream-host": ["upstream_host"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The names of what `WantedFacts.usage` is about. */
const usageNames = {
  model: ["model", "request_model", "gen_ai.request.model"],
  "input-tokens": ["input_tokens", "prompt_tokens", "gen_ai.usage.input_tokens"],
  "cached-tokens": ["cached_tokens", "cached_input_tokens", "cache_read_input_tokens"],
  "cache-write-tokens": ["cache_write_tokens", "cache_creation_input_tokens"],
  "output-tokens": ["output_tokens", "completion_tokens", "gen_ai.usage.output_tokens"],
  "response-bytes": ["bytes_sent", "response_bytes"],
  units: ["units", "custom_units"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The counts by their names above. */
const usageCountsByName = [
  ["inputTokens", "input-tokens"],
  ["cachedTokens", "cached-tokens"],
  ["cacheWriteTokens", "cache-write-tokens"],
  ["outputTokens", "output-tokens"],
  ["responseBytes", "response-bytes"],
  ["customUnits", "units"],
] as const satisfies readonly (readonly [UsageCount, keyof typeof usageNames])[];

type PartName = keyof typeof defaultNames;

/** The parts that are headers. */
const headerParts: ReadonlyMap<string, PartName> = new Map([
  [":method", "method"],
  [":path", "path"],
  [":authority", "authority"],
  ["x-forwarded-for", "x-forwarded-for"],
]);

/** What logs call the time of a request by default. */
export const timeFields: readonly string[] = defaultNames.time;

/** What can be read under another name: parts of a request, and the headers that are wanted. */
export function readNames({ headers, timing, usage }: WantedFacts): readonly string[] {
  const timed = timing === "wanted" ? Object.keys(timingNames) : [];
  const used = usage === "wanted" ? Object.keys(usageNames) : [];
  return [...new Set([...Object.keys(defaultNames), ...timed, ...used, ...headers])];
}

/** What a person says of the names in a log, and what the policy looks at. */
export interface NamedLogOptions {
  readonly wanted: WantedFacts;
  /** Names that differ from the default ones, by what `readNames` tells. */
  readonly renamed: ReadonlyMap<string, string>;
}

/** What a line says under a name; undefined: nothing. */
type Fields = (name: string) => string | undefined;

/** The fields of a line; undefined for one that has none. */
type ReadFields = (line: string) => Fields | undefined;

/** The names under which each wanted thing may stand; the first one that says it counts. */
function namesOf({ wanted, renamed }: NamedLogOptions) {
  const ownOr = (name: string, defaults: readonly string[]): readonly string[] => {
    // A pseudo-header is a part as well: `:path` is `path`.
    const own = renamed.get(name) ?? renamed.get(`:${name}`);
    return own === undefined ? defaults : [own];
  };
  const namesOfPart = (part: PartName) => ownOr(part, defaultNames[part]);
  const isAddressWanted = wanted.address === "wanted";
  return {
    time: namesOfPart("time"),
    flags: namesOfPart("flags"),
    authority: namesOfPart("authority"),
    remoteAddress: isAddressWanted ? namesOfPart("remote-address") : [],
    forwardedFor: isAddressWanted ? namesOfPart("x-forwarded-for") : [],
    timing:
      wanted.timing === "wanted"
        ? {
            duration: ownOr("duration", timingNames.duration),
            status: ownOr("status", timingNames.status),
            upstreamHost: ownOr("upstream-host", timingNames["upstream-host"]),
          }
        : undefined,
    usage:
      wanted.usage === "wanted"
        ? {
            model: ownOr("model", usageNames.model),
            counts: usageCountsByName.map(([count, name]) => {
              return { count, names: ownOr(name, usageNames[name]) };
            }),
          }
        : undefined,
    headers: wanted.headers.map((header) => {
      const part = headerParts.get(header);
      if (part !== undefined) return namesOfPart(part);
      if (header.startsWith(":")) return [];
      return ownOr(header, [header, header.replaceAll("-", "_"), `req_${header}`]);
    }),
  };
}

function createReader(options: NamedLogOptions, readFields: ReadFields): LineReader {
  const names = namesOf(options);
  const { time, flags, authority, remoteAddress, forwardedFor, headers, timing, usage } = names;

  return (line): LoggedRequest | undefined => {
    const fields = readFields(line);
    if (fields === undefined) return undefined;
    const read = (tried: readonly string[]): string => {
      for (const name of tried) {
        const value = fields(name);
        if (value !== undefined && saidText(value) !== "") return value;
      }
      return "";
    };
    const timeUs = parseTimestampUs(read(time));
    if (timeUs === undefined) return undefined;
    const remote = read(remoteAddress);
    const request = {
      timeUs,
      wasLimited: isLimited(read(flags)),
      authority: read(authority),
      address: callerAddress(remote, remote === "" ? read(forwardedFor) : ""),
      headers: headers.map(read),
      ...(usage !== undefined && { usage: readUsage(usage, read) }),
    };
    if (timing === undefined) return request;
    const [host] = timing.upstreamHost.flatMap((name) => fields(name) ?? []);
    return { ...request, timing: readTiming(read(timing.duration), read(timing.status), host) };
  };
}

function readUsage(
  { model, counts }: NonNullable<ReturnType<typeof namesOf>["usage"]>,
  read: (names: readonly string[]) => string,
): LoggedUsage {
  const said = counts.flatMap(({ count, names }) => {
    const text = read(names);
    return /^[0-9]{1,15}$/.test(text) ? [[count, Math.min(Number(text), usageCountMax)]] : [];
  });
  return { model: read(model).slice(0, modelCharsMax), counts: Object.fromEntries(said) };
}

/**
 * Reads a JSON object a line, as `json_format` of Envoy writes it: by the names of Istio's and
 * Envoy Gateway's defaults, headers by their own names, also with `_` for `-`.
 */
export function createJsonReader(options: NamedLogOptions): LineReader {
  return createReader(options, (line) => {
    const object = parseObject(line);
    return object === undefined ? undefined : (name) => plainText(object[name]);
  });
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What objects inherit is neither text nor number, so it passes for nothing here. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function plainText(value: unknown): string | undefined {
  // Envoy writes it where its text formats have `-`.
  if (value === null) return "-";
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/**
 * Reads lines of CSV below a line of titles, which are the names of `createJsonReader`. Undefined
 * where none of them is the time, without which no line could be read.
 */
export function createCsvReader(titles: string, options: NamedLogOptions): LineReader | undefined {
  const ownTime = options.renamed.get("time");
  const times = ownTime === undefined ? timeFields : [ownTime];
  const columns = new Map(splitCsv(titles).map((title, column) => [title.trim(), column]));
  if (!times.some((name) => columns.has(name))) return undefined;
  return createReader(options, (line) => {
    const cells = splitCsv(line);
    return (name) => cells[columns.get(name) ?? cells.length];
  });
}

/** The cells of a line; a cell in quotes may hold commas, and quotes twice. Source: RFC 4180. */
export function splitCsv(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(",");
  const cells: string[] = [];
  const cell = /(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/gy;
  for (let match = cell.exec(line); match !== null; match = cell.exec(line)) {
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (cell.lastIndex >= line.length) break;
  }
  return cells;
}
