import type { OptionValues } from "../options/options.js";
import { parseSafeUrl, safeUrlRule } from "./safe-url.js";

/** Sign-in at an identity provider, as configured. */
export interface ConsoleOidcChoice {
  readonly clientId: string;
  /** Undefined: a public client, whose codes are protected only by PKCE. */
  readonly clientSecret: string | undefined;
  readonly scope: string;
  /** Undefined: those of the issuer's discovery document. */
  readonly endpoints: { readonly authorization: URL; readonly token: URL } | undefined;
}

/** The console, as configured. */
export interface ConsoleChoice {
  readonly mode: "full" | "read-only";
  /** URL at which browsers reach it. Undefined: the host of each request. */
  readonly url: URL | undefined;
  readonly sessionMs: number;
  /** Secret that seals sessions. Undefined: a random key of this process. */
  readonly key: string | undefined;
  /** Undefined: there is no sign-in at an identity provider. */
  readonly oidc: ConsoleOidcChoice | undefined;
}

/** The options that a `ConsoleChoice` depends on. */
export type ConsoleValues = Pick<
  OptionValues,
  | "console"
  | "consoleUrl"
  | "consoleSession"
  | "consoleKey"
  | "consoleOidcClientId"
  | "consoleOidcClientSecret"
  | "consoleOidcScope"
  | "consoleOidcAuthorizationUrl"
  | "consoleOidcTokenUrl"
>;

/** Minimum length of the secret that seals sessions, in characters. */
const keyCharsMin = 32;

/**
 * Combines the options of the console.
 *
 * @param hasIssuer whether tokens of an identity provider are accepted
 * @param problems receives the problems that are found
 * @returns undefined: there is no console
 */
export function chooseConsole(
  values: ConsoleValues,
  { hasIssuer }: { readonly hasIssuer: boolean },
  problems: string[],
): ConsoleChoice | undefined {
  const { console: mode, consoleUrl, consoleSession: sessionMs, consoleKey: key } = values;
  if (mode === "off") return undefined;
  if (key !== undefined && key.length < keyCharsMin) {
    problems.push(`HEADGATE_CONSOLE_KEY must have at least ${keyCharsMin} characters`);
  }
  const url = consoleUrl === undefined ? undefined : parseSafeUrl(consoleUrl);
  if (consoleUrl !== undefined && url?.href !== `${url?.origin}/`) {
    problems.push(`HEADGATE_CONSOLE_URL ${safeUrlRule}, and has no path`);
  }
  const oidc = chooseSignIn(values, hasIssuer, problems);
  return { mode: mode === "on" ? "full" : mode, url, sessionMs, key, oidc };
}

function chooseSignIn(
  values: ConsoleValues,
  hasIssuer: boolean,
  problems: string[],
): ConsoleOidcChoice | undefined {
  const { consoleOidcClientId: clientId, consoleOidcScope: scope } = values;
  const { consoleOidcClientSecret: clientSecret } = values;
  const texts = [values.consoleOidcAuthorizationUrl, values.consoleOidcTokenUrl];
  if (clientId === undefined) {
    if (clientSecret !== undefined || texts.some((text) => text !== undefined)) {
      problems.push("the HEADGATE_CONSOLE_OIDC_ settings need HEADGATE_CONSOLE_OIDC_CLIENT_ID");
    }
    return undefined;
  }
  if (!hasIssuer) {
    problems.push(
      "HEADGATE_CONSOLE_OIDC_CLIENT_ID needs HEADGATE_ADMIN_OIDC_ISSUER, " +
        "HEADGATE_ADMIN_OIDC_AUDIENCE and HEADGATE_ADMIN_OIDC_JWKS_URL: whose tokens are taken",
    );
  }
  if (!scope.split(" ").includes("openid")) {
    problems.push("HEADGATE_CONSOLE_OIDC_SCOPE must have the word openid");
  }
  const [authorization, token] = texts.map((text) => text && parseSafeUrl(text));
  if (texts.every((text) => text === undefined)) {
    return { clientId, clientSecret, scope, endpoints: undefined };
  }
  if (!authorization || !token) {
    problems.push(
      "HEADGATE_CONSOLE_OIDC_AUTHORIZATION_URL and HEADGATE_CONSOLE_OIDC_TOKEN_URL belong " +
        `together, and each ${safeUrlRule}`,
    );
    return undefined;
  }
  return { clientId, clientSecret, scope, endpoints: { authorization, token } };
}
