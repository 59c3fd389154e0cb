import { parseTimestampUs } from "../core/base/timestamp.js";
import {
  callerAddress,
  isLimited,
  type LineReader,
  type LoggedRequest,
  saidText,
  type WantedFacts,
} from "./logged-request.js";

/** What stands between two quoted parts. */
const between = '" "';

/** `[TIME] "METHOD PATH PROTOCOL" STATUS FLAGS`, up to the next quote: no path holds a blank. */
const beginning = /^\[([^"]*)\] "([^ "]*) ([^ "]*) [^ "]*"\s*\d{1,3}(?: (?<flags>[^ "]*)[^"]*)?"/;

/** Unquoted parts behind the last quote of Istio's format: clusters, addresses, name and route. */
const istioTailCount = 6;
const istioAddressIndex = 3;

/**
 * Reads the text format that Envoy writes where nobody says otherwise, and Istio's default text.
 *
 * Source: Envoy, "Access logging", default format string; Istio, "Getting Envoy's Access Logs".
 */
export function createTextReader({ headers, address }: WantedFacts): LineReader {
  return (text): LoggedRequest | undefined => {
    const line = readLine(text);
    const timeUs = line === undefined ? undefined : parseTimestampUs(line.time);
    if (line === undefined || timeUs === undefined) return undefined;
    const { flags, remoteAddress, said } = line;
    const forwardedFor = said.get("x-forwarded-for") ?? "";
    return {
      timeUs,
      wasLimited: isLimited(flags),
      authority: saidText(said.get(":authority") ?? ""),
      address: address === "wanted" ? callerAddress(remoteAddress, forwardedFor) : "",
      headers: headers.map((header) => saidText(said.get(header) ?? "")),
    };
  };
}

interface TextLine {
  readonly time: string;
  readonly flags: string;
  readonly remoteAddress: string;
  /** By the header that has it. */
  readonly said: ReadonlyMap<string, string>;
}

/**
 * Undefined for a line of another format. Callers may send quotes, and Envoy writes them as they
 * are, so the quoted parts are told apart from both ends: the agent is all that is in between.
 */
function readLine(text: string): TextLine | undefined {
  const begun = beginning.exec(text);
  if (begun === null) return undefined;
  const [{ length }, time = "", method = "", path = ""] = begun;
  const lastQuote = text.lastIndexOf('"');
  const tail = text
    .slice(lastQuote + 1)
    .trim()
    .split(" ");
  const isIstio = tail.length === istioTailCount;
  if (!isIstio && tail.join("") !== "") return undefined;
  // Istio has a quoted part of its own before those of the caller.
  const start = isIstio ? text.indexOf('"', text.indexOf('"', length) + 1) + 1 : length;
  const forwardedEnd = text.indexOf(between, start);
  const authorityEnd = text.lastIndexOf(between, lastQuote - between.length);
  const idEnd = text.lastIndexOf(between, authorityEnd - between.length);
  const agentEnd = text.lastIndexOf(between, idEnd - between.length);
  if (forwardedEnd === -1 || forwardedEnd + between.length > agentEnd) return undefined;
  return {
    time,
    flags: begun.groups?.["flags"] ?? "",
    remoteAddress: isIstio ? (tail[istioAddressIndex] ?? "") : "",
    said: new Map([
      [":method", method],
      [":path", path],
      [":authority", text.slice(idEnd + between.length, authorityEnd)],
      ["x-forwarded-for", text.slice(start, forwardedEnd)],
      ["user-agent", text.slice(forwardedEnd + between.length, agentEnd)],
      ["x-request-id", text.slice(agentEnd + between.length, idEnd)],
    ]),
  };
}
