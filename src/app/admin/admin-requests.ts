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
import { createAdminHandlers } from "../../rpc/admin/admin-router.js";
import { adminCallKey } from "../../rpc/admin/call.js";
import { CallPace } from "../../rpc/admin/call-pace.js";
import { codeName } from "../../rpc/admin/failures.js";
import { type AdminMethod, adminMessageBytesMax, adminMethods } from "../../rpc/admin/methods.js";
import { refusalAnswer } from "../../rpc/admin/refusal-answer.js";
import { RequestBodies } from "../../rpc/admin/request-body.js";
import type { AdminServiceParts } from "../../rpc/admin/service-parts.js";
import type { AdminAccess, Authentication, Credentials } from "../access/admin-access.js";
import type { AdminCallLog, LoggedCall } from "../access/admin-call-log.js";
import { type AdminChoice, isLoopbackHost } from "../config/admin-choice.js";
import type { AdminCounts } from "../metrics/admin-metrics.js";
import { type AdminPeer, adminRequestMsMax } from "./admin-connections.js";
import { answerEarly } from "./early-answer.js";

/** What answers are made of. */
export interface AdminRequestParts {
  readonly choice: AdminChoice;
  readonly access: AdminAccess;
  readonly services: AdminServiceParts;
  readonly counts: AdminCounts;
  readonly calls: AdminCallLog;
  readonly clock: Clock;
  readonly onBug: (thrown: unknown) => void;
}

/** Requests with long messages at a time: each may hold megabytes while it is read. */
export const longRequestsMax = 4;

/** Calls a second of one address, known or not: guessing is slow, and costs no more than this. */
const addressCallsPerSecond = 1_000;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Why a request is not even read. */
interface Refusal {
  readonly code: Code;
  readonly message: string;
  /** Who may not call this; absent: nobody known. */
  readonly caller?: string;
}

/** Who is let in to the services: nobody's body is read before it is known whose it is. */
export class AdminRequests {
  readonly #parts: AdminRequestParts;
  readonly #handlers: ReadonlyMap<string, UniversalHandler>;
  readonly #callers: CallPace;
  readonly #addresses: CallPace;
  readonly #bodies = new RequestBodies();
  #longCount = 0;

  constructor(parts: AdminRequestParts, shutdownSignal: AbortSignal) {
    const { services, clock, choice, onBug } = parts;
    this.#parts = parts;
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

  /** Answers a request; `closed` resolves when its response is over, whoever ended it. */
  async answer(
    request: Request,
    response: Response,
    { peer, closed }: { readonly peer: AdminPeer; readonly closed: Promise<void> },
  ): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const method = adminMethods.get(path);
    const handler = this.#handlers.get(path);
    if (method === undefined || handler === undefined) {
      this.#refuse(request, response, {
        method: "none",
        peer,
        refusal: { code: Code.Unimplemented, message: "there is no such method here" },
      });
      return;
    }
    const credentials: Credentials = {
      authorization: headerOf(request, "authorization"),
      certificateNames: peer.certificateNames,
    };
    const entry = await this.#letIn(request, { method, credentials, peer });
    const { name } = method.method;
    if ("code" in entry) this.#refuse(request, response, { method: name, peer, refusal: entry });
    else {
      const serving = { method, handler, principal: entry, credentials, peer, closed };
      await this.#serve(request, response, serving);
    }
  }

  /** Who calls, or why they may not. */
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
    if (choice.accessPath === undefined && !isLoopbackHost(hostOf(request))) {
      // A page of a browser here may call any name that leads to this machine.
      const message = "without an access list only 127.0.0.1, [::1] and localhost are names of it";
      return { code: Code.PermissionDenied, message };
    }
    const addressWaitMs = this.#addresses.take(peer.address);
    if (addressWaitMs > 0) return tooFast(addressWaitMs);
    const known = await access.authenticate(credentials);
    if (known.kind !== "principal") return unknownCaller(known);
    const { principal } = known;
    if (!mayActSomewhere(principal, method.role)) {
      return { ...notAllowed(method, choice), caller: principal.name };
    }
    const waitMs = this.#callers.take(principal.name);
    if (waitMs > 0) return tooFast(waitMs);
    if (method.messageBytesMax > adminMessageBytesMax && this.#longCount >= longRequestsMax) {
      const message = `${longRequestsMax} calls with policies are being answered; try again`;
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
      readonly peer: AdminPeer;
      readonly closed: Promise<void>;
    },
  ): Promise<void> {
    const { method, handler, principal, credentials, peer, closed } = serving;
    const { access, clock, counts, calls } = this.#parts;
    const isStillAllowed = async (): Promise<boolean> => {
      const now = await access.authenticate(credentials);
      // What they are shown was chosen by what they might see when they began.
      return now.kind === "principal" && isDeepStrictEqual(now.principal, principal);
    };
    const { name } = method.method;
    const logged = { method: name, caller: principal.name, address: peer.address };
    if (method.showsCallers) calls.noteLook(logged);
    let isRead = false;
    const onRead = (): void => {
      isRead = true;
    };
    const onEnd = (code: string): void => {
      if (deniedCodes.has(code)) calls.noteRefused(logged, code);
      counts.count(name, code);
    };
    const call = { principal, isStillAllowed, onRead, onEnd };
    const values = createContextValues().set(adminCallKey, call);
    const isLong = method.messageBytesMax > adminMessageBytesMax;
    if (isLong) this.#longCount += 1;
    // A request that does not end is cut, whatever protocol it speaks.
    const cancel = clock.schedule(adminRequestMsMax, () => {
      if (!request.complete) request.destroy();
    });
    // The library's own answer is no sign of the end: over HTTP/1.1 it never says that it is done.
    void closed.then(() => {
      cancel();
      if (isLong) this.#longCount -= 1;
      // A message that is none of the method's reaches no service.
      if (!isRead) counts.count(name, "unread");
    });
    try {
      const asked = universalRequestFromNodeRequest(request, response, undefined, values);
      const counted = this.#bodies.counted(asked, method);
      await universalResponseToNodeResponse(await handler(counted), response);
    } catch {
      // The caller has gone in the middle of an answer; there is nobody to tell.
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

/** How calls end for those who may not make them. */
const deniedCodes: ReadonlySet<string> = new Set(["unauthenticated", "permission_denied"]);

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
      ? "; set HEADGATE_ADMIN_ACCESS, or HEADGATE_ADMIN_OPEN for everybody on this machine"
      : "";
  return { code: Code.PermissionDenied, message: `this needs the role ${role}${hint}` };
}

function unknownCaller({ kind }: Exclude<Authentication, { kind: "principal" }>): Refusal {
  switch (kind) {
    case "expired":
      return { code: Code.Unauthenticated, message: "expired" };
    case "unavailable":
      return { code: Code.Unavailable, message: "tokens cannot be looked at now; try again" };
    case "missing":
      return { code: Code.Unauthenticated, message: "credentials are needed: a bearer token" };
    case "unknown":
      return { code: Code.Unauthenticated, message: "the credentials are not known here" };
  }
}
