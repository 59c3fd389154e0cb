import type { JWTPayload, JWTVerifyGetKey } from "jose";
import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import { isLeanJson } from "../../core/base/json-count.js";
import { cutText } from "../../core/base/text.js";
import { askText } from "../base/signal-http.js";
import type { OidcChoice } from "../config/admin-choice.js";

/** Claims of an identity provider's token, or the reason why it is not accepted. */
type VerifiedToken =
  /** @property untilEpochMs when it expires */
  | {
      readonly kind: "claims";
      readonly issuer: string;
      /** Printable ASCII, with at most single blanks inside. */
      readonly subject: string;
      readonly groups: readonly string[];
      /** A name for people, which proves nothing. Undefined: the token has none. */
      readonly shownName: string | undefined;
      readonly untilEpochMs: number;
    }
  | { readonly kind: "expired" | "invalid" }
  /** The provider's keys cannot be read now. */
  | { readonly kind: "unavailable" };

/** Maximum difference between the provider's clock and this one, in seconds. */
const clockSkewSecondsMax = 30;

/** Maximum length of a token, in characters. */
export const tokenCharsMax = 16_384;

/** Maximum length of a subject, in characters. */
const subjectCharsMax = 255;

/** Claims with a name for people, best first. Source: OpenID Connect Core 1.0 section 5.1. */
const nameClaims = ["email", "preferred_username", "name"] as const;

/** Maximum length of a name for people, in characters. */
const shownNameCharsMax = 64;

/** Maximum number of groups of one token that are read. */
const groupsMax = 1_000;

/** Maximum age of the provider's keys, and minimum time between two fetches of them, in ms. */
const keysAgeMsMax = 600_000;
const keysPauseMs = 10_000;

/** Maximum time in which the provider must return its keys, in milliseconds. */
export const keysMsMax = 3_000;

/** Maximum size of the provider's keys, in bytes: some 400 RSA keys. */
export const keysBytesMax = 262_144;

/**
 * Accepted signature algorithms: those with a public key. With a shared-secret algorithm, anyone
 * who knows the public key could sign.
 */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
];

/**
 * Reads tokens of an identity provider. Never rejects.
 *
 * @param nonce that the token must contain; undefined: not checked
 */
export type TokenReader = (token: string, nonce?: string) => Promise<VerifiedToken>;

/** Loads the library that reads tokens. Most processes receive none, and do not load it. */
export function loadTokenLibrary(): Promise<typeof import("jose")> {
  return import("jose");
}

/**
 * Creates a reader of OpenID Connect tokens that checks signature, issuer, audience and times.
 *
 * Source: RFC 7519 section 7.2; OpenID Connect Core 1.0 section 3.1.3.7.
 */
export function createTokenReader(
  { issuer, audience, jwksUrl, groupsClaim }: OidcChoice,
  clock: Clock,
): TokenReader {
  let keys: JWTVerifyGetKey | undefined;
  return async (token, nonce) => {
    if (token.length > tokenCharsMax) return { kind: "invalid" };
    try {
      const { createRemoteJWKSet, customFetch, jwtVerify } = await loadTokenLibrary();
      keys ??= createRemoteJWKSet(jwksUrl, {
        [customFetch]: () => fetchKeys(jwksUrl, clock),
        timeoutDuration: keysMsMax,
        cooldownDuration: keysPauseMs,
        cacheMaxAge: keysAgeMsMax,
      });
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms,
        clockTolerance: clockSkewSecondsMax,
        requiredClaims: ["exp", "sub"],
        currentDate: new Date(clock.epochUs() / 1_000),
      });
      const isOurs = payload["nonce"] === nonce && (payload["azp"] ?? audience) === audience;
      if (nonce !== undefined && !isOurs) return { kind: "invalid" };
      return readClaims(payload, { issuer, groupsClaim });
    } catch (thrown) {
      return { kind: failureOf(thrown) };
    }
  };
}

/** Fetches the keys with bounds: the library itself would read and parse any response. */
async function fetchKeys(url: URL, clock: Clock): Promise<Response> {
  const text = await askText({
    url,
    accept: "application/json, application/jwk-set+json",
    bytesMax: keysBytesMax,
    deadlineMs: clock.monotonicMs() + keysMsMax,
    clock,
  });
  if (!isLeanJson(text)) throw new ServiceError("SIGNAL_TOO_LARGE");
  return new Response(text);
}

function readClaims(
  payload: JWTPayload,
  { issuer, groupsClaim }: Pick<OidcChoice, "issuer" | "groupsClaim">,
): VerifiedToken {
  const { sub, exp } = payload;
  if (typeof sub !== "string" || !isSubject(sub) || exp === undefined) return { kind: "invalid" };
  const claim = payload[groupsClaim];
  const listed: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  const groups = listed.filter((one) => typeof one === "string").slice(0, groupsMax);
  const untilEpochMs = (exp + clockSkewSecondsMax) * 1_000;
  const names = nameClaims.map((name) => payload[name]);
  const shownName = names.find((one) => typeof one === "string" && one.trim() !== "");
  return {
    kind: "claims",
    issuer,
    subject: sub,
    groups,
    shownName:
      typeof shownName === "string" ? cutText(shownName.trim(), shownNameCharsMax) : undefined,
    untilEpochMs,
  };
}

/**
 * Reports whether a subject may appear in the audit log: no part of it acts on a terminal, or looks
 * like another subject.
 *
 * Source: OpenID Connect Core 1.0 section 2: at most 255 ASCII characters.
 */
function isSubject(text: string): boolean {
  return text.length <= subjectCharsMax && /^[!-~]+(?: [!-~]+)*$/.test(text);
}

/** Tells faults of the token from failures to reach the provider. Source: jose errors. */
function failureOf(thrown: unknown): "expired" | "invalid" | "unavailable" {
  const code: unknown = Reflect.get(Object(thrown), "code");
  if (code === "ERR_JWT_EXPIRED") return "expired";
  const isOfToken =
    typeof code === "string" &&
    (code.startsWith("ERR_JWT_") || code.startsWith("ERR_JWS_") || ofToken.has(code));
  return isOfToken ? "invalid" : "unavailable";
}

const ofToken: ReadonlySet<string> = new Set([
  "ERR_JOSE_ALG_NOT_ALLOWED",
  "ERR_JOSE_NOT_SUPPORTED",
  "ERR_JWKS_NO_MATCHING_KEY",
  "ERR_JWKS_MULTIPLE_MATCHING_KEYS",
]);
