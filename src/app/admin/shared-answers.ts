import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { Principal } from "../../core/base/access-list.js";
import type { Clock } from "../../core/base/clock.js";
import { adminCallKey } from "../../rpc/admin/call.js";
import type { AdminMethod } from "../../rpc/admin/methods.js";
import type { RequestBodies } from "../../rpc/admin/request-body.js";
import { sendAnswer } from "../console/answers.js";
import { readShortBody } from "../console/short-body.js";

/** Methods that open consoles poll. */
const sharedMethods: ReadonlySet<string> = new Set([
  "GetFindings",
  "GetFleet",
  "GetHistory",
  "ListAudit",
  "ListServices",
  "TopKeys",
]);

/** Maximum size of a request whose response is shared, in bytes: longer ones are seldom equal. */
const requestBytesMax = 16_384;

/** Maximum number of requests read at the same time to find out whether they are equal. */
const readingMax = 256;

/** Maximum number of responses that are kept, and their bytes. */
export const sharedAnswersMax = 64;
const sharedBytesMax = 8_388_608;

/** Maximum time that a response is kept, in milliseconds. */
const sharedMs = 1_000;

/** Time after a second's start until which the previous second's responses are sent, in ms. */
const lateMs = 50;

interface SharedCall {
  readonly request: IncomingMessage | Http2ServerRequest;
  readonly response: ServerResponse | Http2ServerResponse;
  readonly method: AdminMethod;
  readonly handler: UniversalHandler;
  readonly principal: Principal;
}

/** A complete response, and the code with which its call ended. */
interface WholeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly code: string;
}

/**
 * Responses to polls of consoles in this second, in bytes. One call answers all callers with equal
 * permissions and equal requests within a second: the data changes once a second, and a call costs
 * ten times as much as sending its response again.
 */
export class SharedAnswers {
  readonly #clock: Pick<Clock, "epochUs" | "schedule">;
  readonly #bodies: RequestBodies;
  #answers = new Map<string, Promise<WholeAnswer>>();
  #byteCount = 0;
  #second = 0;
  #readingCount = 0;

  constructor(clock: Pick<Clock, "epochUs" | "schedule">, bodies: RequestBodies) {
    this.#clock = clock;
    this.#bodies = bodies;
  }

  /**
   * Answers a call if its response may be shared.
   *
   * @returns the code with which it ended; undefined: it may not be shared, and nothing was read
   */
  async answer(call: SharedCall): Promise<{ readonly code: string } | undefined> {
    const { request, response } = call;
    if (!isShared(call) || this.#readingCount >= readingMax) return undefined;
    this.#readingCount += 1;
    const body = await readShortBody(request, requestBytesMax, this.#clock);
    this.#readingCount -= 1;
    if (typeof body === "number") {
      sendAnswer({ request, response }, { status: body, headers: {}, body: "" }, this.#clock);
      return { code: "unread" };
    }
    const answer = await this.#take(call, body);
    sendAnswer({ request, response }, answer, this.#clock);
    return answer;
  }

  /** Drops all responses after a change, so that callers see the change at once. */
  clear(): void {
    this.#answers = new Map();
    this.#byteCount = 0;
  }

  #take(call: SharedCall, body: Buffer): Promise<WholeAnswer> {
    const second = Math.floor((this.#clock.epochUs() / 1_000 - lateMs) / sharedMs);
    if (second !== this.#second) this.clear();
    this.#second = second;
    const { url, headers } = call.request;
    const names = [url, headers["content-type"], headers["accept-encoding"]];
    const key = JSON.stringify([...names, call.principal.grants, body.toString("base64")]);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const made = make(call, body, this.#bodies);
    if (this.#answers.size < sharedAnswersMax) this.#keep(key, made);
    return made;
  }

  #keep(key: string, made: Promise<WholeAnswer>): void {
    const answers = this.#answers;
    if (answers.size === 0) {
      this.#clock.schedule(sharedMs, () => {
        if (this.#answers === answers) this.clear();
      });
    }
    answers.set(key, made);
    const noteEnd = (answer: WholeAnswer | undefined): void => {
      const byteCount = this.#byteCount + (answer?.body.length ?? sharedBytesMax + 1);
      if (this.#answers !== answers) return;
      if (byteCount > sharedBytesMax) answers.delete(key);
      else this.#byteCount = byteCount;
    };
    made.then(noteEnd, () => noteEnd(undefined));
  }
}

/** Reports whether it may be shared: a unary Connect call without a deadline of its own. */
function isShared({ request, method }: SharedCall): boolean {
  const { headers } = request;
  return (
    sharedMethods.has(method.method.name) &&
    request.method === "POST" &&
    /^application\/(?:proto|json)$/.test(headers["content-type"] ?? "") &&
    headers["content-encoding"] === undefined &&
    headers["connect-timeout-ms"] === undefined &&
    Number(headers["content-length"] ?? Number.NaN) <= requestBytesMax
  );
}

/** Calls the method for all equal requests. The call does not end with its first caller. */
async function make(
  { request, method, handler, principal }: SharedCall,
  body: Buffer,
  bodies: RequestBodies,
): Promise<WholeAnswer> {
  let code = "unread";
  const onEnd = (ended: string): void => {
    code = ended;
  };
  const header = new Headers();
  for (const name of ["content-type", "accept-encoding", "connect-protocol-version"]) {
    const value = request.headers[name];
    if (typeof value === "string") header.set(name, value);
  }
  const asked = {
    httpVersion: request.httpVersion,
    method: "POST",
    url: new URL(request.url ?? "/", "http://console").href,
    header,
    body: once(body),
    signal: new AbortController().signal,
    contextValues: valuesOf(principal, onEnd),
  };
  const answered = await handler(bodies.counted(asked, method));
  const chunks: Uint8Array[] = [];
  for await (const chunk of answered.body ?? []) chunks.push(chunk);
  const headers = Object.fromEntries(answered.header ?? []);
  return { status: answered.status, headers, body: Buffer.concat(chunks), code };
}

function valuesOf(principal: Principal, onEnd: (code: string) => void): ContextValues {
  const call = { principal, isStillAllowed: async () => true, onRead: () => {}, onEnd };
  return createContextValues().set(adminCallKey, call);
}

async function* once(body: Uint8Array) {
  yield body;
}
