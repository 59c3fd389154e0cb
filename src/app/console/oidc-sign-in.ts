import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../../core/base/clock.js";
import { isServiceError } from "../../core/base/errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/base/json.js";
import { isLeanJson } from "../../core/base/json-count.js";
import type { Identification } from "../access/admin-access.js";
import { createTokenReader, type TokenReader } from "../access/admin-oidc.js";
import { askText } from "../base/signal-http.js";
import type { OidcChoice } from "../config/admin-choice.js";
import type { ConsoleOidcChoice } from "../config/console-choice.js";
import { parseSafeUrl } from "../config/safe-url.js";
import type { Seal } from "./seal.js";

/** Why a sign-in failed; the console shows a text for each reason. */
export type SignInFailure =
  /** The user or the provider denied access. */
  | "denied"
  /** It took too long, or was started in another browser. */
  | "stale"
  /** The identity provider cannot be reached. */
  | "unavailable"
  /** The provider's response is invalid. */
  | "refused"
  /** The provider knows the user, but the user has no role here. */
  | "unknown";

/** The result of a sign-in. @property back the path to continue at */
export type SignedIn =
  | (Extract<Identification, { kind: "identity" }> & { readonly back: string })
  | { readonly kind: "failed"; readonly why: SignInFailure; readonly back: string };

/** What `OidcSignIn` needs. */
export interface OidcSignInParts {
  readonly oidc: OidcChoice;
  readonly choice: ConsoleOidcChoice;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly identify: (token: string, readToken: TokenReader) => Promise<Identification>;
}

/** The maximum time to sign in, in milliseconds. */
export const signInMsMax = 600_000;

/** The maximum time of each response of the provider, and its maximum size. */
const answerMsMax = 5_000;
const answerBytesMax = 65_536;

/** Maximum number of sign-ins that wait for the provider's token: anyone may start one. */
export const redeemingMax = 16;

/** How long the provider's endpoints are cached, in milliseconds. */
const endpointsMsMax = 600_000;

/** The maximum length of the path to return to, in characters. */
const backCharsMax = 1_000;

type Endpoints = NonNullable<ConsoleOidcChoice["endpoints"]>;

/**
 * Signs users in at an identity provider, with the authorization code flow and PKCE. The browser
 * keeps the state between the two steps, sealed.
 *
 * Source: OpenID Connect Core 1.0 section 3.1; RFC 7636; RFC 9207; OpenID Connect Discovery 1.0.
 */
export class OidcSignIn {
  readonly #parts: OidcSignInParts;
  readonly #readToken: TokenReader;
  #known: { readonly endpoints: Endpoints; readonly untilMs: number } | undefined;
  #discovering: Promise<Endpoints | undefined> | undefined;
  #redeemingCount = 0;

  constructor(parts: OidcSignInParts) {
    this.#parts = parts;
    const { oidc, choice, clock } = parts;
    // An ID token is issued for the client that requested it.
    this.#readToken = createTokenReader({ ...oidc, audience: choice.clientId }, clock);
  }

  /**
   * The URL to which a browser is redirected to sign in.
   *
   * @param callback the URL to which the provider redirects it afterwards
   * @param back the path to continue at then
   * @returns undefined if the provider's endpoints cannot be fetched
   */
  async start(
    callback: string,
    back: string,
  ): Promise<{ readonly location: string; readonly pending: string } | undefined> {
    const endpoints = await this.#endpoints();
    if (endpoints === undefined) return undefined;
    const { choice, seal, clock } = this.#parts;
    const [state, nonce, verifier] = [randomText(), randomText(), randomText()];
    const location = new URL(endpoints.authorization);
    const asked = {
      response_type: "code",
      client_id: choice.clientId,
      redirect_uri: callback,
      scope: choice.scope,
      state,
      nonce,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(asked)) location.searchParams.set(name, value);
    const untilMs = clock.epochUs() / 1_000 + signInMsMax;
    const kept = { state, nonce, verifier, callback, back: safePath(back), untilMs };
    return { location: location.href, pending: seal.close("sign-in", kept) };
  }

  /** Handles the provider's redirect back to the console. Never rejects. */
  async finish(query: URLSearchParams, pending: string | undefined): Promise<SignedIn> {
    const { oidc, clock, seal, identify } = this.#parts;
    const kept = pending === undefined ? undefined : readPending(seal.open("sign-in", pending));
    const { back = "/" } = kept ?? {};
    const failed = (why: SignInFailure): SignedIn => ({ kind: "failed", why, back });
    const isLate = kept === undefined || kept.untilMs <= clock.epochUs() / 1_000;
    if (isLate || query.get("state") !== kept.state) return failed("stale");
    if ((query.get("iss") ?? oidc.issuer) !== oidc.issuer) return failed("refused");
    if (query.has("error")) {
      return failed(query.get("error") === "access_denied" ? "denied" : "refused");
    }
    if (this.#redeemingCount >= redeemingMax) return failed("unavailable");
    this.#redeemingCount += 1;
    const token = await this.#redeem(query.get("code") ?? "", kept);
    this.#redeemingCount -= 1;
    if (token === undefined || token === "refused") return failed(token ?? "unavailable");
    const found = await identify(token, (text) => this.#readToken(text, kept.nonce));
    if (found.kind === "identity") return { ...found, back };
    return failed(found.kind === "unavailable" ? "unavailable" : "refused");
  }

  /** The ID token; undefined if the provider cannot be reached. */
  async #redeem(code: string, { verifier, callback }: Pending): Promise<string | undefined> {
    const endpoints = await this.#endpoints();
    if (endpoints === undefined) return undefined;
    const { clientId, clientSecret } = this.#parts.choice;
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: callback,
      client_id: clientId,
      code_verifier: verifier,
    });
    const authorization = clientSecret === undefined ? {} : basic(clientId, clientSecret);
    try {
      const answer = await this.#ask({ url: endpoints.token, form, ...authorization });
      const token = answer?.["id_token"];
      return typeof token === "string" ? token : "refused";
    } catch (thrown) {
      return isServiceError(thrown) && thrown.code === "SIGNAL_REFUSED" ? "refused" : undefined;
    }
  }

  async #endpoints(): Promise<Endpoints | undefined> {
    const { choice, clock } = this.#parts;
    if (choice.endpoints !== undefined) return choice.endpoints;
    const nowMs = clock.monotonicMs();
    if (this.#known !== undefined && nowMs < this.#known.untilMs) return this.#known.endpoints;
    // One request for all callers that wait for its response.
    this.#discovering ??= this.#discover(nowMs).finally(() => {
      this.#discovering = undefined;
    });
    return this.#discovering;
  }

  async #discover(nowMs: number): Promise<Endpoints | undefined> {
    const { oidc } = this.#parts;
    const base = oidc.issuer.replace(/\/$/, "");
    const url = parseSafeUrl(`${base}/.well-known/openid-configuration`);
    if (url === undefined) return undefined;
    try {
      const found = await this.#ask({ url });
      const authorization = parseSafeUrl(String(found?.["authorization_endpoint"]));
      const token = parseSafeUrl(String(found?.["token_endpoint"]));
      if (found?.["issuer"] !== oidc.issuer || !authorization || !token) return undefined;
      const endpoints = { authorization, token };
      this.#known = { endpoints, untilMs: nowMs + endpointsMsMax };
      return endpoints;
    } catch {
      return undefined;
    }
  }

  async #ask(asked: {
    readonly url: URL;
    readonly form?: URLSearchParams;
    readonly authorization?: string;
  }): Promise<JsonObject | undefined> {
    const { clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + answerMsMax;
    const accept = "application/json";
    const text = await askText({ ...asked, accept, bytesMax: answerBytesMax, deadlineMs, clock });
    if (!isLeanJson(text)) return undefined;
    try {
      const value: JsonValue = JSON.parse(text);
      return isJsonObject(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The state that a browser keeps during a sign-in. */
interface Pending {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly callback: string;
  readonly back: string;
  readonly untilMs: number;
}

function readPending(opened: JsonObject | undefined): Pending | undefined {
  if (opened === undefined) return undefined;
  const { state, nonce, verifier, callback, back, untilMs } = opened;
  if (typeof state !== "string" || typeof nonce !== "string") return undefined;
  if (typeof verifier !== "string" || typeof callback !== "string") return undefined;
  if (typeof back !== "string" || typeof untilMs !== "number") return undefined;
  return { state, nonce, verifier, callback, back, untilMs };
}

/** Restricts a path to the console's own origin: no browser can take it for another host. */
function safePath(back: string): string {
  return back.length <= backCharsMax && /^\/(?![/\\])[!-~]*$/.test(back) ? back : "/";
}

/** Source: RFC 6749 section 2.3.1: both parts are encoded as in forms first. */
function basic(clientId: string, secret: string): { readonly authorization: string } {
  const encode = (text: string): string => new URLSearchParams({ t: text }).toString().slice(2);
  const pair = Buffer.from(`${encode(clientId)}:${encode(secret)}`).toString("base64");
  return { authorization: `Basic ${pair}` };
}

/** 256 bits. */
function randomText(): string {
  return randomBytes(32).toString("base64url");
}
