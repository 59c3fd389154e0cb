import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Random } from "../../core/base/clock.js";
import { assertNever, ServiceError } from "../../core/base/errors.js";
import { SharedSignalReader } from "../../fleet/signals/shared-signal.js";
import { readJsonAnswer, readPrometheusAnswer } from "../../fleet/signals/signal-answers.js";
import { KeySignalReader } from "../../fleet/signals/signal-key.js";
import { SignalPage } from "../../fleet/signals/signal-page.js";
import type { SignalReader, SignalReadings } from "../../fleet/signals/signal-readings.js";
import type { SignalPlace } from "../../policy/services/signal-source.js";
import type { NumberStore } from "../../store/coordination/number-store.js";
import type { SignalStore } from "../../store/coordination/signal-store.js";
import { sha256 } from "../base/sha256.js";
import { askSource } from "../base/signal-http.js";
import type { SignalChoice } from "../config/signal-choice.js";
import type { HostWatch } from "./host-watch.js";
import { KafkaSignalReader } from "./kafka-signal.js";

/** Parts of readers. */
export interface SignalReaderParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly choice: SignalChoice;
  /** Absent if this process has no other store than its own. */
  readonly store: NumberStore | undefined;
  /** Reads the host. Absent if the host is not read. */
  readonly host?: Pick<HostWatch, "readerOf">;
  /** Absent if no other replica can have the same sources. */
  readonly shared?: SignalStore | undefined;
}

/** What to read for one service. */
interface SignalWish {
  readonly place: SignalPlace;
  /** Maximum number of keys. Undefined if the limit is not split. */
  readonly keysMax: number | undefined;
  readonly everyMs: number;
  readonly timeoutMs: number;
}

/** Maximum size of a JSON response, in bytes: parsing it blocks all requests. */
export const signalJsonBytesMax = 262_144;

/** Maximum size of a page of metrics, in bytes. It is read piece by piece. */
export const signalPageBytesMax = 33_554_432;

/** Maximum size of a token's file, in bytes. */
export const tokenBytesMax = 16_384;

/** Creates the reader of a place. */
export function createSignalReader(parts: SignalReaderParts, wish: SignalWish): SignalReader {
  const { place, keysMax } = wish;
  switch (place.kind) {
    case "prometheus":
      return { read: (deadlineMs) => readPrometheus(parts, { place, keysMax, deadlineMs }) };
    case "metrics":
      return { read: (deadlineMs) => readPage(parts, { place, keysMax, deadlineMs }) };
    case "http":
      return { read: (deadlineMs) => readJson(parts, { place, keysMax, deadlineMs }) };
    case "redis": {
      const { store } = parts;
      if (store === undefined) return unconfigured("A key needs a Redis: BACKEND_TYPE=redis.");
      return new KeySignalReader({ store, key: place.key, keysMax });
    }
    case "host":
      return parts.host?.readerOf(place.name) ?? unconfigured("The host is not read here.");
    case "kafka": {
      const { tokensPath } = parts.choice;
      const reader = new KafkaSignalReader({ ...parts, place, keysMax, tokensPath });
      const { shared: store } = parts;
      if (store === undefined) return reader;
      const [source, replicaId] = [sha256(JSON.stringify(wish)), parts.random.id()];
      return new SharedSignalReader({ ...wish, store, reader, source, replicaId });
    }
    case "fixed":
      return { read: async () => ({ kind: "whole", reading: place.reading }) };
    default:
      return assertNever(place);
  }
}

function unconfigured(detail: string): SignalReader {
  return {
    read: async () => {
      throw new ServiceError("SIGNAL_UNCONFIGURED", detail);
    },
  };
}

interface Question<Kind extends SignalPlace["kind"]> {
  readonly place: Extract<SignalPlace, { kind: Kind }>;
  readonly keysMax: number | undefined;
  readonly deadlineMs: number;
}

/** Source: Prometheus, "HTTP API": `GET /api/v1/query`. */
async function readPrometheus(
  parts: SignalReaderParts,
  { place, keysMax = 0, deadlineMs }: Question<"prometheus">,
): Promise<SignalReadings> {
  const own = place.server === undefined ? parts.choice.prometheus : undefined;
  const base = place.server ?? own?.url;
  if (base === undefined) {
    const words = "A query needs a server: in the policy, or HEADGATE_PROMETHEUS_URL.";
    throw new ServiceError("SIGNAL_UNCONFIGURED", words);
  }
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/query`;
  url.search = new URLSearchParams({ query: place.query }).toString();
  const login = own?.authorization;
  const authorization = login ?? (await tokenFor(url, { parts, isOwn: own !== undefined }));
  const text = await readText(parts, { url, deadlineMs, authorization });
  return readPrometheusAnswer(text, { by: place.by, keysMax });
}

async function readJson(
  parts: SignalReaderParts,
  { place, keysMax, deadlineMs }: Question<"http">,
): Promise<SignalReadings> {
  const url = new URL(place.url);
  const authorization = await tokenFor(url, { parts, isOwn: false });
  const text = await readText(parts, { url, deadlineMs, authorization });
  const { pointer } = place;
  return readJsonAnswer(text, { pointer, ...(keysMax === undefined ? {} : { keysMax }) });
}

async function readPage(
  parts: SignalReaderParts,
  { place, keysMax = 0, deadlineMs }: Question<"metrics">,
): Promise<SignalReadings> {
  const url = new URL(place.url);
  const authorization = await tokenFor(url, { parts, isOwn: false });
  const page = new SignalPage(place.select, { by: place.by, keysMax });
  await askSource({
    url,
    ...(authorization === undefined ? {} : { authorization }),
    accept: "text/plain;version=0.0.4",
    bytesMax: signalPageBytesMax,
    deadlineMs,
    clock: parts.clock,
    onPiece: (piece) => page.add(piece),
  });
  return page.finish();
}

async function readText(
  { clock }: SignalReaderParts,
  asked: {
    readonly url: URL;
    readonly deadlineMs: number;
    readonly authorization: string | undefined;
  },
): Promise<string> {
  const pieces: string[] = [];
  const { url, deadlineMs, authorization } = asked;
  await askSource({
    url,
    ...(authorization === undefined ? {} : { authorization }),
    accept: "application/json",
    bytesMax: signalJsonBytesMax,
    deadlineMs,
    clock,
    onPiece: (piece) => pieces.push(piece),
  });
  return pieces.join("");
}

/**
 * Reads the token of a host for each request, because tokens are renewed. It is sent in plaintext
 * only if the process's own settings say so: a policy names hosts, but not whom to trust.
 */
async function tokenFor(
  { hostname, protocol }: URL,
  { parts, isOwn }: { readonly parts: SignalReaderParts; readonly isOwn: boolean },
): Promise<string | undefined> {
  const { tokensPath } = parts.choice;
  const isFileName = /^[a-z0-9][a-z0-9._-]*$/.test(hostname);
  if (tokensPath === undefined || !isFileName || (protocol !== "https:" && !isOwn))
    return undefined;
  const token = await readToken(join(tokensPath, hostname));
  return token === undefined ? undefined : `Bearer ${token}`;
}

async function readToken(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  const text = found.size > tokenBytesMax ? "" : await readFile(path, "latin1").catch(() => "");
  const token = text.trim();
  // RFC 6750, section 2.1. Other characters could corrupt the header, or add another one.
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return token;
  throw new ServiceError(
    "SIGNAL_UNCONFIGURED",
    "The token file of this host in HEADGATE_SIGNAL_TOKENS is invalid.",
  );
}
