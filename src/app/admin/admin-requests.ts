import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { isDeepStrictEqual } from "node:util";
import { Code, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { mayActSomewhere, type Principal } from "../../core/base/access-list.js";
import type { Clock } from "../../core/base/clock.js";
import { Tally } from "../../core/collections/tally.js";
import { adminCallKey } from "../../rpc/admin/call.js";
import { CallPace } from "../../rpc/admin/call-pace.js";
import { codeName } from "../../rpc/admin/connect-errors.js";
import { type AdminMethod, adminMessageBytesMax, adminMethods } from "../../rpc/admin/methods.js";
import { refusalAnswer } from "../../rpc/admin/refusal-answer.js";
import { RequestBodies } from "../../rpc/admin/request-body.js";
import { createAdminHandlers } from "../../rpc/admin/router/admin-router.js";
import type { AdminServiceParts } from "../../rpc/admin/service-parts.js";
import type { AdminAccess, Authentication, Credentials } from "../access/admin-access.js";
import type { AdminCallLog, LoggedCall } from "../access/admin-call-log.js";
import type { AdminChoice } from "../config/admin-choice.js";
import { isLoopbackHost } from "../config/safe-url.js";
import { consoleHeaders, sendAnswer } from "../console/answers.js";
import type { Console } from "../console/console.js";
import { isOtherOrigin, type Session } from "../console/sessions.js";
import type { AdminCounts } from "../metrics/admin-metrics.js";
import type { OpenTls } from "../tls/tls.js";
import { type AdminPeer, adminRequestMsMax, isTlsSpoken } from "./admin-connections.js";
import { answerEarly } from "./early-answer.js";
import { SharedAnswers } from "./shared-answers.js";

/** Parts that requests need. */
export interface AdminRequestParts {
  readonly choice: AdminChoice;
  readonly access: AdminAccess;
  readonly services: AdminServiceParts;
  readonly counts: AdminCounts;
  readonly calls: AdminCallLog;
  readonly clock: Clock;
  /** The console for browsers. Undefined: there is none. */
  readonly console: Console | undefined;
  /** Undefined if gRPC is served in plaintext. */
  readonly tls: OpenTls | undefined;
  readonly onBug: (thrown: unknown) => void;
}

/** Maximum concurrent requests with long messages: each may use megabytes while it is read. */
export const longRequestsMax = 4;

/** Maximum concurrent calls of one caller, with unread responses: each may keep one in memory. */
export const callsAtOnceMax = 200;

/** Maximum calls per second of one address, known or not: slows guessing, and bounds its cost. */
const addressCallsPerSecond = 1_000;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Reason why a request is refused unread. */
interface Refusal {
  readonly code: Code;
  readonly message: string;
  /** The caller without access. Absent: not authenticated. */
  readonly caller?: string;
}

/** Admits requests to the services. A body is only read after its caller is authenticated. */
export class AdminRequests {
  readonly #parts: AdminRequestParts;
  readonly #handlers: ReadonlyMap<string, UniversalHandler>;
  readonly #callers: CallPace;
  readonly #addresses: CallPace;
  readonly #callsAtOnce = new Tally<string>();
  readonly #bodies = new RequestBodies();
  readonly #shared: SharedAnswers;
  #longCount = 0;

  constructor(parts: AdminRequestParts, shutdownSignal: AbortSignal) {
    const { services, clock, choice, onBug } = parts;
    this.#parts = parts;
    this.#shared = new SharedAnswers(clock, this.#bodies);
    const perSecond = choice.callsPerSecond;
    this.#callers = new CallPace(clock, { perSecond, burst: 2 * perSecond });
    const ofAddress = Math.max(addressCallsPerSecond, 2 * perSecond);
    this.#addresses = new CallPace(clock, { perSecond: ofAddress, burst: ofAddress });
    this.#handlers = createAdminHandlers(services, {
      compressions: [compressionGzip],
      shutdownSignal,
      onBug,
    });
  }

  /** Answers a request. `closed` resolves when its response is over, whichever side ended it. */
  async answer(
    request: Request,
    response: Response,
    { peer, closed }: { readonly peer: AdminPeer; readonly closed: Promise<void> },
  ): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const method = adminMethods.get(path);
    const handler = this.#handlers.get(path);
    if (method === undefined || handler === undefined) {
      if (await this.#answerBrowser(request, response, { path, peer })) return;
      this.#refuse(request, response, {
        method: "none",
        peer,
        refusal: { code: Code.Unimplemented, message: "unknown method" },
      });
      return;
    }
    const authorization = headerOf(request, "authorization");
    const { console } = this.#parts;
    const session = authorization === undefined ? console?.sessions.of(request.headers) : undefined;
    const credentials: Credentials = {
      authorization,
      certificateNames: peer.certificateNames,
      ...(session === undefined ? {} : { session: session.identity }),
    };
    const refusal = authorization === undefined && this.#judgeBrowser(request, { method, session });
    const entry = refusal || (await this.#letIn(request, { method, credentials, peer }));
    const { name } = method.method;
    if ("code" in entry) this.#refuse(request, response, { method: name, peer, refusal: entry });
    else {
      this.#callsAtOnce.add(entry.name, 1);
      void closed.then(() => this.#callsAtOnce.add(entry.name, -1));
      const serving = { method, handler, principal: entry, credentials, session, peer, closed };
      await this.#serve(request, response, serving);
    }
  }

  /** Serves the console. Returns false if there is no such page. */
  async #answerBrowser(
    request: Request,
    response: Response,
    { path, peer }: { readonly path: string; readonly peer: AdminPeer },
  ): Promise<boolean> {
    const { console, clock } = this.#parts;
    if (console === undefined) return false;
    const refusal = this.#judgePlace(request, peer);
    if (refusal !== undefined) {
      this.#refuse(request, response, { method: "none", peer, refusal });
      return true;
    }
    const answer = await console.answer({ request, path, ...peer });
    if (answer === undefined) return false;
    const headers = { ...consoleHeaders(isTlsSpoken(this.#parts)), ...answer.headers };
    sendAnswer({ request, response }, { ...answer, headers }, clock);
    return true;
  }

  /** Returns why no caller may call from this address or by this host name. Undefined: allowed. */
  #judgePlace(request: Request, peer: AdminPeer): Refusal | undefined {
    if (this.#parts.choice.accessPath === undefined && !isLoopbackHost(hostOf(request))) {
      // A web page in a browser here may call any name that resolves to this machine.
      const message =
        "without an access list, only the host names 127.0.0.1, [::1] and localhost are accepted";
      return { code: Code.PermissionDenied, message };
    }
    const waitMs = this.#addresses.take(peer.address);
    return waitMs > 0 ? tooFast(waitMs) : undefined;
  }

  /** Returns why a browser without a token of its own is refused. Undefined: it is not. */
  #judgeBrowser(
    request: Request,
    { method, session }: { readonly method: AdminMethod; readonly session: Session | undefined },
  ): Refusal | undefined {
    const { console } = this.#parts;
    const { headers } = request;
    // Any page can make the browser send its session cookie, certificate or address.
    if (isOtherOrigin(headers)) {
      return {
        code: Code.PermissionDenied,
        message: "cross-origin calls from browsers are not allowed",
      };
    }
    if (session !== undefined && console?.sessions.isOwnCall(headers, session) !== true) {
      const message =
        "the session's CSRF token is missing or wrong; " +
        "reload the console, or send the csrf of GET /console/session in x-headgate-csrf";
      return { code: Code.PermissionDenied, message };
    }
    if (isBrowser(request, session) && console?.isReadOnly === true && method.role === "operator") {
      return {
        code: Code.PermissionDenied,
        message: "the console is read-only (HEADGATE_CONSOLE)",
      };
    }
    return undefined;
  }

  /** Returns the caller, or the reason why it is refused. */
  async #letIn(
    request: Request,
    {
      method,
      credentials,
      peer,
    }: {
      readonly method: AdminMethod;
      readonly credentials: Credentials;
      readonly peer: AdminPeer;
    },
  ): Promise<Principal | Refusal> {
    const { choice, access } = this.#parts;
    const early = this.#judgePlace(request, peer);
    if (early !== undefined) return early;
    const known = await access.authenticate(credentials);
    if (known.kind !== "principal") return unknownCaller(known);
    const { principal } = known;
    if (!mayActSomewhere(principal, method.role)) {
      return { ...notAllowed(method, choice), caller: principal.name };
    }
    const waitMs = this.#callers.take(principal.name);
    if (waitMs > 0) return tooFast(waitMs);
    if (this.#callsAtOnce.get(principal.name) >= callsAtOnceMax) {
      const message = `${callsAtOnceMax} of your calls are in progress; read their answers`;
      return { code: Code.ResourceExhausted, message };
    }
    if (method.messageBytesMax > adminMessageBytesMax && this.#longCount >= longRequestsMax) {
      const message = `${longRequestsMax} calls with policies are in progress; try again`;
      return { code: Code.ResourceExhausted, message };
    }
    return principal;
  }

  async #serve(
    request: Request,
    response: Response,
    serving: {
      readonly method: AdminMethod;
      readonly handler: UniversalHandler;
      readonly principal: Principal;
      readonly credentials: Credentials;
      readonly session: Session | undefined;
      readonly peer: AdminPeer;
      readonly closed: Promise<void>;
    },
  ): Promise<void> {
    const { method, handler, principal, credentials, session, peer, closed } = serving;
    const { access, clock, counts, calls, console } = this.#parts;
    const isStillAllowed = async (): Promise<boolean> => {
      if (session !== undefined && console?.sessions.isLive(session) !== true) return false;
      const now = await access.authenticate(credentials);
      // The response was limited to what the caller's permissions allowed when the call began.
      return now.kind === "principal" && isDeepStrictEqual(now.principal, principal);
    };
    const { name } = method.method;
    const logged = { method: name, caller: principal.name, address: peer.address };
    if (method.showsCallers) calls.noteLook(logged);
    const onEnd = (code: string): void => {
      if (deniedCodes.has(code)) calls.noteRefused(logged, code);
      counts.count(name, code);
      if (method.role === "operator") this.#shared.clear();
    };
    if (isBrowser(request, session)) {
      const shared = await this.#shared.answer({ request, response, method, handler, principal });
      if (shared !== undefined) return onEnd(shared.code);
    }
    let isRead = false;
    const onRead = (): void => {
      isRead = true;
    };
    const call = { principal, isStillAllowed, onRead, onEnd };
    const values = createContextValues().set(adminCallKey, call);
    const isLong = method.messageBytesMax > adminMessageBytesMax;
    if (isLong) this.#longCount += 1;
    // A request that does not end is cut, in either protocol.
    const cancel = clock.schedule(adminRequestMsMax, () => {
      if (!request.complete) request.destroy();
    });
    // The library's response does not show the end: over HTTP/1.1, it never reports completion.
    void closed.then(() => {
      cancel();
      if (isLong) this.#longCount -= 1;
      // A message that does not parse as the method's reaches no service.
      if (!isRead) counts.count(name, "unread");
    });
    try {
      const asked = universalRequestFromNodeRequest(request, response, undefined, values);
      const counted = this.#bodies.counted(asked, method);
      await universalResponseToNodeResponse(await handler(counted), response);
    } catch {
      // The caller has disconnected in the middle of a response.
      response.destroy?.();
    }
  }

  #refuse(
    request: Request,
    response: Response,
    {
      method,
      peer,
      refusal,
    }: { readonly method: string; readonly peer: AdminPeer; readonly refusal: Refusal },
  ): void {
    const code = codeName(refusal.code);
    this.#parts.counts.count(method, code);
    const logged: LoggedCall = { method, caller: refusal.caller, address: peer.address };
    if (deniedCodes.has(code)) this.#parts.calls.noteRefused(logged, code);
    const answer = refusalAnswer(headerOf(request, "content-type") ?? "", refusal);
    answerEarly({ request, response }, answer, this.#parts.clock);
  }
}

/** Codes of calls that were refused for lack of permission. */
const deniedCodes: ReadonlySet<string> = new Set(["unauthenticated", "permission_denied"]);

/** Reports whether a browser sent it. Programs act for themselves; others can make browsers ask. */
function isBrowser({ headers }: Request, session: Session | undefined): boolean {
  return session !== undefined || headers["sec-fetch-site"] !== undefined;
}

function headerOf(request: Request, name: string): string | undefined {
  const value: unknown = request.headers[name];
  return typeof value === "string" ? value : undefined;
}

function hostOf(request: Request): string {
  const authority = headerOf(request, ":authority") ?? headerOf(request, "host") ?? "";
  return authority.replace(/:\d{1,5}$/, "");
}

function tooFast(waitMs: number): Refusal {
  return { code: Code.ResourceExhausted, message: `too many calls; try again in ${waitMs} ms` };
}

function notAllowed({ role }: AdminMethod, { accessPath }: AdminChoice): Refusal {
  const hint =
    accessPath === undefined
      ? "; set HEADGATE_ADMIN_ACCESS, or HEADGATE_ADMIN_OPEN to allow everybody on this machine"
      : "";
  return { code: Code.PermissionDenied, message: `this needs the role ${role}${hint}` };
}

function unknownCaller({ kind }: Exclude<Authentication, { kind: "principal" }>): Refusal {
  switch (kind) {
    case "expired":
      return { code: Code.Unauthenticated, message: "expired" };
    case "unavailable":
      return {
        code: Code.Unavailable,
        message: "tokens cannot be checked at the moment; try again",
      };
    case "missing":
      return { code: Code.Unauthenticated, message: "credentials are needed: a bearer token" };
    case "unknown":
      return { code: Code.Unauthenticated, message: "the credentials are unknown" };
  }
}
