import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { visibleDomains } from "../../core/base/access-list.js";
import type { Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import type { SharedRecords } from "../../fleet/records/shared-records.js";
import type { AdminAccess, Authentication, SessionIdentity } from "../access/admin-access.js";
import type { AdminCallLog } from "../access/admin-call-log.js";
import { tokenCharsMax } from "../access/admin-oidc.js";
import type { AdminChoice } from "../config/admin-choice.js";
import type { ConsoleChoice } from "../config/console-choice.js";
import type { AdminCounts } from "../metrics/admin-metrics.js";
import { type ConsoleAnswer, json, problem, redirect, sentence } from "./answers.js";
import type { ConsoleAssets } from "./assets.js";
import { EndedSessions } from "./ended-sessions.js";
import { OidcSignIn, signInMsMax } from "./oidc-sign-in.js";
import { Seal } from "./seal.js";
import { authorityOf, isOtherOrigin, Sessions } from "./sessions.js";
import { readShortBody } from "./short-body.js";

/** What a `Console` needs. */
export interface ConsoleParts {
  readonly choice: ConsoleChoice;
  readonly oidc: AdminChoice["oidc"];
  readonly access: AdminAccess;
  /** Undefined if this build has no pages; sessions and calls work nevertheless. */
  readonly assets: ConsoleAssets | undefined;
  readonly counts: AdminCounts;
  readonly calls: AdminCallLog;
  readonly clock: Clock;
  /** What all replicas know about sessions that users ended. */
  readonly records: SharedRecords;
  /** Whether browsers connect over TLS. */
  readonly isTls: boolean;
  readonly replica: string;
  readonly version: string;
}

/** A request to the console, with its sender. */
export interface ConsoleRequest {
  readonly request: IncomingMessage | Http2ServerRequest;
  /** Without the query. */
  readonly path: string;
  readonly address: string;
  readonly certificateNames: readonly string[];
}

/** An authenticated user of the console. */
type Known = Extract<Authentication, { readonly kind: "principal" }>;

/** The maximum size of a sign-in request, in bytes: a token in JSON. */
export const signInBytesMax = 2 * tokenCharsMax;

/** The path to which an identity provider redirects browsers. */
const callbackPath = "/console/oidc/callback";

/** Serves browsers: the pages, the sessions, and signing in. */
export class Console {
  readonly sessions: Sessions;
  readonly #ended: EndedSessions;
  readonly #parts: ConsoleParts;
  readonly #signIn: OidcSignIn | undefined;

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
    const { choice, oidc, access, clock, isTls } = parts;
    const seal = new Seal(choice.key);
    const { sessionMs, url } = choice;
    // Depends on the browser's connection, which may end at a proxy.
    const isSecure = isTls || url?.protocol === "https:";
    const ended = new EndedSessions(parts);
    this.#ended = ended;
    this.sessions = new Sessions({
      seal,
      clock,
      sessionMs,
      isTls: isSecure,
      host: url?.host,
      ended,
    });
    if (oidc === undefined || choice.oidc === undefined || !access.hasList) return;
    const identify: AdminAccess["identify"] = (token, reader) => access.identify(token, reader);
    this.#signIn = new OidcSignIn({ oidc, choice: choice.oidc, seal, clock, identify });
  }

  get isReadOnly(): boolean {
    return this.#parts.choice.mode === "read-only";
  }

  /** Stops pending work for sessions. */
  close(): void {
    this.#ended.close();
  }

  /** Undefined if there is no such page. No request can make it throw. */
  async answer(asked: ConsoleRequest): Promise<ConsoleAnswer | undefined> {
    const { request, path } = asked;
    const { method = "" } = request;
    if (path === "/console/session") return this.#session(asked, method);
    const isRead = method === "GET" || method === "HEAD";
    if (path.startsWith("/console/oidc/")) {
      return isRead ? this.#oidc(asked) : problem(httpStatuses.methodNotAllowed);
    }
    const asset = this.#parts.assets?.answer(path, request.headers);
    if (asset !== undefined) return isRead ? asset : problem(httpStatuses.methodNotAllowed);
    if (path !== "/" || this.#parts.assets !== undefined) return undefined;
    return isRead
      ? sentence(
          "This build does not include the console. Run `npm run compile`, then restart Headgate.",
        )
      : undefined;
  }

  async #session(asked: ConsoleRequest, method: string): Promise<ConsoleAnswer> {
    const { headers } = asked.request;
    if (method === "GET" || method === "HEAD") {
      return isOtherOrigin(headers) ? this.#refuse(asked) : this.#whoAmI(asked);
    }
    if (method !== "POST" && method !== "DELETE") return problem(httpStatuses.methodNotAllowed);
    if (!this.sessions.isOwnPage(headers)) return this.#refuse(asked);
    if (method === "POST") return this.#signInByToken(asked);
    const session = this.sessions.of(headers);
    const isEverywhere = session === undefined || (await this.#ended.end(session));
    const cookie = this.sessions.cookie("session", "", { seconds: 0 });
    return json(httpStatuses.ok, { isEverywhere }, { "set-cookie": cookie });
  }

  async #whoAmI({ request, certificateNames }: ConsoleRequest): Promise<ConsoleAnswer> {
    const { authorization } = request.headers;
    const session = authorization === undefined ? this.sessions.of(request.headers) : undefined;
    const identity = session === undefined ? {} : { session: session.identity };
    const credentials = { authorization, certificateNames, ...identity };
    const known = await this.#parts.access.authenticate(credentials);
    if (known.kind === "principal") {
      const csrf = session === undefined ? "" : this.sessions.csrfOf(session);
      return json(httpStatuses.ok, this.#tell(known, csrf));
    }
    const isPassing = known.kind === "unavailable";
    return this.#unknown(isPassing ? httpStatuses.serviceUnavailable : httpStatuses.unauthorized);
  }

  /** The identity of a caller, and what it may do. */
  #tell({ principal, shownName = principal.name }: Known, csrf: string): JsonObject {
    const { choice, replica, version } = this.#parts;
    const { mode } = choice;
    const operated = visibleDomains(principal, "operator");
    const role = operated === undefined || operated.length > 0 ? "operator" : "reader";
    const domains = visibleDomains(principal) ?? null;
    const operatorDomains = operated ?? null;
    const { name } = principal;
    const signIn = this.#waysIn();
    const who = { name, shownName, role, domains, operatorDomains };
    return { ...who, mode, csrf, signIn, replica, version };
  }

  #waysIn(): readonly string[] {
    if (!this.#parts.access.hasList) return [];
    return this.#signIn === undefined ? ["token"] : ["token", "oidc"];
  }

  #unknown(status: number): ConsoleAnswer {
    return json(status, { signIn: this.#waysIn() });
  }

  async #signInByToken(asked: ConsoleRequest): Promise<ConsoleAnswer> {
    const { request } = asked;
    const { access, clock } = this.#parts;
    const mediaType = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
    if (mediaType !== "application/json") return problem(httpStatuses.unsupportedMediaType);
    const body = await readShortBody(request, signInBytesMax, clock);
    if (typeof body === "number") return problem(body);
    const token = tokenOf(body.toString("utf8"));
    if (token === undefined) return problem(httpStatuses.badRequest);
    const found = await access.identify(token);
    if (found.kind === "identity") return this.#begin(asked, found);
    this.#note(asked, found.kind === "unavailable" ? "unavailable" : "unauthenticated");
    const isPassing = found.kind === "unavailable";
    return this.#unknown(isPassing ? httpStatuses.serviceUnavailable : httpStatuses.unauthorized);
  }

  async #begin(
    asked: ConsoleRequest,
    found: { readonly identity: SessionIdentity; readonly untilEpochMs: number | undefined },
  ): Promise<ConsoleAnswer> {
    const begun = await this.#beginSession(asked, found);
    if (begun === undefined) return this.#unknown(httpStatuses.unauthorized);
    const { known, csrf, cookie } = begun;
    return json(httpStatuses.ok, this.#tell(known, csrf), { "set-cookie": cookie });
  }

  /** Undefined if the identity has no role here. */
  async #beginSession(
    asked: ConsoleRequest,
    found: { readonly identity: SessionIdentity; readonly untilEpochMs: number | undefined },
  ) {
    const { access, calls, counts } = this.#parts;
    const { identity: session } = found;
    const none = { authorization: undefined, certificateNames: [] };
    const known = await access.authenticate({ ...none, session });
    const begun = this.sessions.begin(found.identity, found.untilEpochMs);
    if (known.kind !== "principal" || begun === undefined) {
      this.#note(asked, "unauthenticated");
      return undefined;
    }
    const { name: caller } = known.principal;
    calls.noteSignIn({ method: "SignIn", caller, address: asked.address });
    counts.count("SignIn", "ok");
    return { known, csrf: this.sessions.csrfOf(begun.session), cookie: begun.cookie };
  }

  async #oidc(asked: ConsoleRequest): Promise<ConsoleAnswer | undefined> {
    const { request, path } = asked;
    const query = new URLSearchParams((request.url ?? "").split("?").slice(1).join("?"));
    if (this.#signIn === undefined) return undefined;
    if (path === callbackPath) return this.#finishSignIn(asked, this.#signIn, query);
    if (path !== "/console/oidc/start") return undefined;
    if (isOtherOrigin(request.headers)) return this.#refuse(asked);
    const { choice, isTls } = this.#parts;
    const own = `${isTls ? "https" : "http"}://${authorityOf(request.headers)}`;
    const base = choice.url?.origin ?? own;
    if (!URL.canParse(base)) return problem(httpStatuses.badRequest);
    const back = query.get("back") ?? "/";
    const begun = await this.#signIn.start(new URL(callbackPath, base).href, back);
    if (begun === undefined) return redirect("/?signInFailed=unavailable");
    const cookie = this.sessions.cookie("sign_in", begun.pending, { seconds: signInMsMax / 1_000 });
    return redirect(begun.location, [cookie]);
  }

  async #finishSignIn(
    asked: ConsoleRequest,
    signIn: OidcSignIn,
    query: URLSearchParams,
  ): Promise<ConsoleAnswer> {
    const pending = this.sessions.cookieOf(asked.request.headers, "sign_in");
    const cookies = [this.sessions.cookie("sign_in", "", { seconds: 0 })];
    const ended = await signIn.finish(query, pending);
    if (ended.kind === "failed") {
      this.#note(asked, ended.why === "unavailable" ? "unavailable" : "unauthenticated");
      return redirect(withFailure(ended.back, ended.why), cookies);
    }
    const begun = await this.#beginSession(asked, ended);
    if (begun === undefined) return redirect(withFailure(ended.back, "unknown"), cookies);
    return redirect(ended.back, [...cookies, begun.cookie]);
  }

  /** Refuses requests that a page of another origin makes the browser send. */
  #refuse(asked: ConsoleRequest): ConsoleAnswer {
    this.#note(asked, "permission_denied");
    return problem(httpStatuses.forbidden);
  }

  #note({ address }: ConsoleRequest, code: string): void {
    const { calls, counts } = this.#parts;
    counts.count("SignIn", code);
    calls.noteRefused({ method: "SignIn", caller: undefined, address }, code);
  }
}

function tokenOf(text: string): string | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    const token = isJsonObject(value) ? value["token"] : undefined;
    return typeof token === "string" && token.length <= tokenCharsMax ? token : undefined;
  } catch {
    return undefined;
  }
}

/** Adds the reason for a failed sign-in to a path, without parsing it as a URL of any host. */
function withFailure(back: string, why: string): string {
  const [path = "/", ...fragment] = back.split("#");
  const mark = path.includes("?") ? "&" : "?";
  return [`${path}${mark}signInFailed=${why}`, ...fragment].join("#");
}
