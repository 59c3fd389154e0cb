import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import { httpStatuses } from "../../core/base/http-status.js";

/** One request to a signal source. */
export interface SignalAsk {
  readonly url: URL;
  /** Value of the header `authorization`. A secret. */
  readonly authorization?: string;
  /** The trusted certificate authorities, in PEM. Undefined: those of the system. */
  readonly ca?: string | undefined;
  /** The requested media type, for servers that offer several. */
  readonly accept: string;
  /** Fields of a form that is sent by POST. Undefined: the request is a GET. */
  readonly form?: URLSearchParams;
  /** Maximum number of bytes of a response that are read. */
  readonly bytesMax: number;
  /** Monotonic time at which the request is abandoned. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Receives the next piece of the response, as text. An error that it throws ends the request. */
  readonly onPiece: (piece: string) => void;
}

/** Maximum size of the head of a response, in bytes. */
const headBytesMax = 16_384;

/**
 * Sends a request and passes the response on in pieces. A source is not trusted: redirects are not
 * followed (they could make this process call what only it may call), nothing is decompressed,
 * bytes and time are bounded. Each request has its own connection: requests are rare, and a kept
 * connection could turn out to be closed.
 *
 * @throws ServiceError SIGNAL_TIMEOUT, SIGNAL_UNAVAILABLE, SIGNAL_REFUSED, SIGNAL_MALFORMED,
 *   SIGNAL_TOO_LARGE, or what `onPiece` throws
 */
export function askSource(ask: SignalAsk): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = openRequest(ask);
    const end = (thrown?: unknown): void => {
      cancel();
      asked.destroy();
      if (thrown === undefined) resolve();
      else reject(thrown);
    };
    const cancel = ask.clock.schedule(Math.max(0, ask.deadlineMs - ask.clock.monotonicMs()), () =>
      end(new ServiceError("SIGNAL_TIMEOUT")),
    );
    asked.on("error", (error) => end(connectionFailure(error)));
    // A request that hangs does not keep the process alive.
    asked.on("socket", (socket) => socket.unref());
    asked.on("response", (response) => {
      const refusal = refusalOf(response);
      if (refusal === undefined) readPieces(response, ask, end);
      else end(refusal);
    });
    asked.end(ask.form?.toString());
  });
}

function openRequest({ url, authorization, accept, form, ca }: SignalAsk): ClientRequest {
  const open = url.protocol === "https:" ? httpsRequest : httpRequest;
  return open(url, {
    method: form === undefined ? "GET" : "POST",
    agent: false,
    maxHeaderSize: headBytesMax,
    ...(ca === undefined ? {} : { ca }),
    headers: {
      accept,
      "accept-encoding": "identity",
      "user-agent": "headgate",
      ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      ...(authorization === undefined ? {} : { authorization }),
    },
  });
}

/** Returns the whole of a small response, as text. Throws the same errors as `askSource`. */
export async function askText(ask: Omit<SignalAsk, "onPiece">): Promise<string> {
  const pieces: string[] = [];
  await askSource({ ...ask, onPiece: (piece) => pieces.push(piece) });
  return pieces.join("");
}

function refusalOf({ statusCode, headers }: IncomingMessage): ServiceError | undefined {
  if (statusCode !== httpStatuses.ok)
    return new ServiceError("SIGNAL_REFUSED", `The response status is ${statusCode}.`);
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding === "identity") return undefined;
  return new ServiceError(
    "SIGNAL_MALFORMED",
    "The response is compressed, which was not requested.",
  );
}

function readPieces(
  response: IncomingMessage,
  { bytesMax, onPiece }: SignalAsk,
  end: (thrown?: unknown) => void,
): void {
  const decoder = new StringDecoder("utf8");
  let byteCount = 0;
  let isOver = false;
  const over = (thrown?: unknown): void => {
    isOver = true;
    end(thrown);
  };
  const handOn = (piece: string): void => {
    try {
      onPiece(piece);
    } catch (thrown) {
      over(thrown);
    }
  };
  response.on("data", (bytes: Buffer) => {
    if (isOver) return;
    byteCount += bytes.length;
    if (byteCount > bytesMax) {
      over(new ServiceError("SIGNAL_TOO_LARGE", `The response has more than ${bytesMax} bytes.`));
    } else {
      handOn(decoder.write(bytes));
    }
  });
  response.on("error", (error) => over(connectionFailure(error)));
  response.on("end", () => {
    if (isOver) return;
    handOn(decoder.end());
    if (!isOver) over();
  });
}

/** Describes a failure by its code of Node or OpenSSL. Their messages may contain host names. */
export function connectionFailure(error: Error): ServiceError {
  const code = String(Reflect.get(error, "code"));
  const detail = /^[A-Z][A-Z0-9_]{2,47}$/.test(code)
    ? `The connection failed: ${code}.`
    : undefined;
  return new ServiceError("SIGNAL_UNAVAILABLE", detail, { cause: error });
}
