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

/** Field names of the parts of a request. The first one found is used. */
const defaultNames = {
  time: ["start_time", "time", "timestamp", "@timestamp", "ts"],
  method: ["method", ":method", "request_method"],
  path: ["x-envoy-origin-path", "x-envoy-original-path", "path", ":path", "request_path", "uri"],
  authority: [":authority", "authority", "host"],
  flags: ["response_flags", "flags"],
  "x-forwarded-for": ["x_forwarded_for", "x-forwarded-for"],
  "remote-address": ["downstream_remote_address", "remote_address", "client_ip"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Field names for `WantedFacts.timing`. */
const timingNames = {
  duration: ["duration", "duration_ms"],
  status: ["response_code", "status", "status_code"],
  "upstream-host": ["upstream_host"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Field names for `WantedFacts.usage`. */
const usageNames = {
  model: ["model", "request_model", "gen_ai.request.model"],
  "input-tokens": ["input_tokens", "prompt_tokens", "gen_ai.usage.input_tokens"],
  "cached-tokens": ["cached_tokens", "cached_input_tokens", "cache_read_input_tokens"],
  "cache-write-tokens": ["cache_write_tokens", "cache_creation_input_tokens"],
  "output-tokens": ["output_tokens", "completion_tokens", "gen_ai.usage.output_tokens"],
  "response-bytes": ["bytes_sent", "response_bytes"],
  units: ["units", "custom_units"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Counts with their names above. */
const usageCountsByName = [
  ["inputTokens", "input-tokens"],
  ["cachedTokens", "cached-tokens"],
  ["cacheWriteTokens", "cache-write-tokens"],
  ["outputTokens", "output-tokens"],
  ["responseBytes", "response-bytes"],
  ["customUnits", "units"],
] as const satisfies readonly (readonly [UsageCount, keyof typeof usageNames])[];

type PartName = keyof typeof defaultNames;

/** Parts that are headers. */
const headerParts: ReadonlyMap<string, PartName> = new Map([
  [":method", "method"],
  [":path", "path"],
  [":authority", "authority"],
  ["x-forwarded-for", "x-forwarded-for"],
]);

/** Default field names for the time of a request. */
export const timeFields: readonly string[] = defaultNames.time;

/** Returns all names that can be mapped to fields: parts of a request, and the wanted headers. */
export function readNames({ headers, timing, usage }: WantedFacts): readonly string[] {
  const timed = timing === "wanted" ? Object.keys(timingNames) : [];
  const used = usage === "wanted" ? Object.keys(usageNames) : [];
  return [...new Set([...Object.keys(defaultNames), ...timed, ...used, ...headers])];
}

/** Field names given by the user, and the facts that the policy needs. */
export interface NamedLogOptions {
  readonly wanted: WantedFacts;
  /** Field names that differ from the defaults, by the names from `readNames`. */
  readonly renamed: ReadonlyMap<string, string>;
}

/** Returns the value of a field; undefined: it is missing. */
type Fields = (name: string) => string | undefined;

/** Returns the fields of a line; undefined for a line without fields. */
type ReadFields = (line: string) => Fields | undefined;

/** Returns the possible field names of each wanted fact. The first one found is used. */
function namesOf({ wanted, renamed }: NamedLogOptions) {
  const ownOr = (name: string, defaults: readonly string[]): readonly string[] => {
    // A pseudo-header is also a part: `:path` is `path`.
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
 * Creates a reader of one JSON object per line, as Envoy's `json_format` writes it. It knows the
 * default names of Istio and Envoy Gateway, and headers by their own names, also with `_` for `-`.
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

/** Inherited properties are neither text nor number, so they do not count as fields. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function plainText(value: unknown): string | undefined {
  // Envoy writes null where its text formats have `-`.
  if (value === null) return "-";
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/**
 * Creates a reader of CSV below a line of titles, which are the names of `createJsonReader`.
 * Undefined if no title is the time, without which no line can be read.
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

/** Splits a line into cells. Quoted cells may hold commas and doubled quotes. Source: RFC 4180. */
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
