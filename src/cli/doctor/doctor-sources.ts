import { readFile, stat } from "node:fs/promises";
import { parseDateMs } from "../../app/base/clock.js";
import { readErrorWords } from "../../app/config/policy-files.js";
import { systemClock } from "../../host/clock.js";
import { visibleText } from "../../policy/problems/problem.js";

/** Timeout of one answer, in milliseconds. */
const answerMsMax = 15_000;

/** Maximum size of one answer or file, in bytes. */
export const sourceBytesMax = 134_217_728;

/** Failure to read a source. The message says why, and what it is needed for. */
export class SourceFailure extends Error {
  override readonly name = "SourceFailure";
}

/** Response of a server, and the times of the request. */
export interface DoctorAnswer {
  readonly status: number;
  readonly text: string;
  /** The server's time in milliseconds since 1970, at the middle of its whole second. */
  readonly dateMs: number | undefined;
  /** Local times of the request and of the complete response. */
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** Reads a URL given by the user; undefined if it cannot be called. */
export function parseServerUrl(text: string): URL | undefined {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  const isPlain = url.username === "" && url.password === "" && url.search === "";
  return isPlain && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Sends a request to a server, with limits for time and size.
 *
 * @throws SourceFailure if there is no complete response
 */
export async function askServer(base: URL, path: string): Promise<DoctorAnswer> {
  const url = new URL(base.pathname.replace(/\/$/, "") + path, base);
  const askedMs = systemClock.epochUs() / 1_000;
  try {
    const answer = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(answerMsMax),
    });
    const text = await readBody(answer);
    const dateMs = parseDateMs(answer.headers.get("date") ?? "");
    return {
      status: answer.status,
      text,
      dateMs: dateMs === undefined ? undefined : dateMs + 500,
      askedMs,
      answeredMs: systemClock.epochUs() / 1_000,
    };
  } catch (thrown) {
    if (thrown instanceof SourceFailure) throw thrown;
    throw new SourceFailure(`${shownServer(base)} cannot be reached: ${whyWords(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Returns the name of a server for messages. */
export function shownServer(url: URL): string {
  return visibleText(url.origin);
}

async function readBody(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > sourceBytesMax) {
      throw new SourceFailure(`a response is longer than ${sourceBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function whyWords(thrown: unknown): string {
  if (thrown instanceof Error && thrown.name === "TimeoutError") {
    return `no response within ${answerMsMax / 1_000} s`;
  }
  const cause: unknown = thrown instanceof Error ? thrown.cause : undefined;
  const code: unknown = Reflect.get(Object(cause), "code");
  if (code === "ECONNREFUSED") return "nothing listens there";
  return typeof code === "string" ? code : "the response is not understood";
}

/**
 * Reads a file of limited size.
 *
 * @throws SourceFailure if it cannot be read
 */
export async function readSourceFile(path: string): Promise<string> {
  const shown = visibleText(path);
  try {
    const { size } = await stat(path);
    if (size > sourceBytesMax) {
      throw new SourceFailure(`${shown} is longer than ${sourceBytesMax} bytes`);
    }
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof SourceFailure) throw thrown;
    throw new SourceFailure(`${shown} cannot be read: ${readErrorWords(thrown)}`);
  }
}
