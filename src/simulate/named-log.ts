import { JsonFields } from "./json-fields.js";
import { CsvFields, type LineFields, splitCsv } from "./line-fields.js";
import { LogTimes } from "./log-times.js";
import {
  callerAddress,
  isLimited,
  type LineReader,
  type LoggedRequest,
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

type PartName = keyof typeof defaultNames;

/** The parts that are headers. */
const headerParts: ReadonlyMap<string, PartName> = new Map([
  [":method", "method"],
  [":path", "path"],
  [":authority", "authority"],
  ["x-forwarded-for", "x-forwarded-for"],
]);

/** What the time of a request is usually called. */
export const timeFields: readonly string[] = defaultNames.time;

/** What can be read under another name: parts of a request, and the headers that are wanted. */
export function readNames({ headers }: WantedFacts): readonly string[] {
  return [...new Set([...Object.keys(defaultNames), ...headers])];
}

/** What a person says of the names in a log, and what the policy looks at. */
export interface NamedLogOptions {
  readonly wanted: WantedFacts;
  /** Names that differ from the usual ones, by what `readNames` tells. */
  readonly renamed: ReadonlyMap<string, string>;
}

/** Where each wanted thing may stand in a line; the first place that says it counts. */
interface Places {
  readonly time: readonly number[];
  readonly flags: readonly number[];
  readonly authority: readonly number[];
  readonly remoteAddress: readonly number[];
  readonly forwardedFor: readonly number[];
  readonly headers: readonly (readonly number[])[];
}

const nowhere: readonly number[] = [];

function placesOf({ wanted, renamed }: NamedLogOptions, names: FieldNames): Places {
  const ownOr = (name: string, usual: readonly string[]): readonly number[] => {
    // A pseudo-header is a part as well: `:path` is `path`.
    const own = renamed.get(name) ?? renamed.get(`:${name}`);
    return names.placesOf(own === undefined ? usual : [own]);
  };
  const placesOfPart = (part: PartName) => ownOr(part, defaultNames[part]);
  const isAddressWanted = wanted.address === "wanted";
  return {
    time: placesOfPart("time"),
    flags: placesOfPart("flags"),
    authority: placesOfPart("authority"),
    remoteAddress: isAddressWanted ? placesOfPart("remote-address") : nowhere,
    forwardedFor: isAddressWanted ? placesOfPart("x-forwarded-for") : nowhere,
    headers: wanted.headers.map((header) => {
      const part = headerParts.get(header);
      if (part !== undefined) return placesOfPart(part);
      if (header.startsWith(":")) return nowhere;
      return ownOr(header, [header, header.replaceAll("-", "_"), `req_${header}`]);
    }),
  };
}

/** Asks for fields by what they may be called. */
class FieldNames {
  readonly #placesByName = new Map<string, number>();

  /** All names that were asked for, by their places. */
  get names(): readonly string[] {
    return [...this.#placesByName.keys()];
  }

  placesOf(names: readonly string[]): readonly number[] {
    return names.map((name) => {
      const place = this.#placesByName.get(name) ?? this.#placesByName.size;
      this.#placesByName.set(name, place);
      return place;
    });
  }
}

function createReader(
  options: NamedLogOptions,
  createFields: (names: readonly string[]) => LineFields,
): LineReader {
  const names = new FieldNames();
  const { time, flags, authority, remoteAddress, forwardedFor, headers } = placesOf(options, names);
  const fields = createFields(names.names);
  const times = new LogTimes();
  const read = (places: readonly number[]): string => {
    for (const place of places) {
      const value = fields.value(place);
      if (value !== undefined && saidText(value) !== "") return value;
    }
    return "";
  };
  return (line): LoggedRequest | undefined => {
    if (!fields.take(line)) return undefined;
    const timeUs = times.read(read(time));
    if (timeUs === undefined) return undefined;
    const remote = read(remoteAddress);
    return {
      timeUs,
      wasLimited: isLimited(read(flags)),
      authority: read(authority),
      address: callerAddress(remote, remote === "" ? read(forwardedFor) : ""),
      headers: headers.map(read),
    };
  };
}

/**
 * Reads a JSON object a line, as `json_format` of Envoy writes it: by the names of Istio's and
 * Envoy Gateway's defaults, headers by their own names, also with `_` for `-`.
 */
export function createJsonReader(options: NamedLogOptions): LineReader {
  return createReader(options, (names) => new JsonFields(names));
}

/**
 * Reads lines of CSV below a line of titles, which are the names of `createJsonReader`. Undefined
 * where none of them is the time, without which no line could be read.
 */
export function createCsvReader(titles: string, options: NamedLogOptions): LineReader | undefined {
  const ownTime = options.renamed.get("time");
  const times = ownTime === undefined ? timeFields : [ownTime];
  if (!splitCsv(titles).some((title) => times.includes(title.trim()))) return undefined;
  return createReader(options, (names) => new CsvFields(titles, names));
}
