import type { OptionValues } from "../options/options.js";
import { type ConsoleChoice, type ConsoleValues, chooseConsole } from "./console-choice.js";
import type { ConfigFindings } from "./findings.js";
import { isLoopbackHost, parseSafeUrl, safeUrlRule } from "./safe-url.js";

/** Tokens of an identity provider, as configured. */
export interface OidcChoice {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: URL;
  readonly groupsClaim: string;
}

/** The admin API, as configured. */
export interface AdminChoice {
  readonly host: string;
  readonly port: number;
  readonly isLoopback: boolean;
  /** The access list. Undefined: everyone on this machine may call. */
  readonly accessPath: string | undefined;
  /** Without an access list: whether callers may also change things. */
  readonly isOpen: boolean;
  readonly oidc: OidcChoice | undefined;
  readonly callsPerSecond: number;
  /** The console for browsers. Undefined: there is none. */
  readonly console: ConsoleChoice | undefined;
}

/** The options that an `AdminChoice` depends on. */
export type AdminValues = ConsoleValues &
  Pick<
    OptionValues,
    | "adminAddress"
    | "adminAccess"
    | "adminOpen"
    | "adminCallsPerSecond"
    | "adminOidcIssuer"
    | "adminOidcAudience"
    | "adminOidcJwksUrl"
    | "adminOidcGroupsClaim"
  >;

/** Options that decide whether operators may take profiles, and where. */
type ProfileValues = Pick<OptionValues, "debugHost" | "debugProfiles">;

/**
 * Combines the options of the admin API. Nothing is opened to a network without credentials, and a
 * protection that would silently not apply is a problem.
 *
 * @returns undefined: there is none
 */
export function chooseAdmin(
  values: AdminValues & ProfileValues & Pick<OptionValues, "grpcServerUseTls">,
  { problems, notices }: ConfigFindings,
): AdminChoice | undefined {
  const { adminAddress: place, adminAccess: accessPath, adminOpen: isOpen } = values;
  checkProfiles(values, problems);
  if (place === undefined) return undefined;
  const isLoopback = isLoopbackHost(place.host);
  if (!isLoopback && accessPath === undefined) {
    problems.push(
      "HEADGATE_ADMIN_ADDR can be reached from other machines, but " +
        "HEADGATE_ADMIN_ACCESS is not set, so everybody could call; set it to an " +
        "access list, or listen on 127.0.0.1",
    );
  }
  if (isOpen && accessPath !== undefined) {
    problems.push(
      "HEADGATE_ADMIN_OPEN is true, but HEADGATE_ADMIN_ACCESS defines who may " +
        "call; remove one of them",
    );
  }
  const oidc = chooseOidc(values, problems);
  const console = chooseConsole(values, { hasIssuer: oidc !== undefined }, problems);
  if (!isLoopback && !values.grpcServerUseTls) {
    notices.push(
      "The admin API can be reached from other machines in plaintext, so tokens " +
        "can be read in transit. Set GRPC_SERVER_USE_TLS, or protect it with a proxy " +
        "or a mesh.",
    );
  }
  const { adminCallsPerSecond: callsPerSecond } = values;
  return { ...place, isLoopback, accessPath, isOpen, oidc, callsPerSecond, console };
}

/** Checks profiles. The debug port has no TLS, so data for operators must stay on this machine. */
function checkProfiles(values: AdminValues & ProfileValues, problems: string[]): void {
  const { debugHost, debugProfiles, adminAddress, adminAccess, adminOpen } = values;
  if (!debugProfiles || debugHost === "") return;
  if (!isLoopbackHost(debugHost)) {
    problems.push(
      "HEADGATE_DEBUG_PROFILES is true, but DEBUG_HOST can be reached from other " +
        "machines, and heap snapshots contain passwords; listen on 127.0.0.1",
    );
  }
  if (adminAddress === undefined || (adminAccess === undefined && !adminOpen)) {
    problems.push(
      "HEADGATE_DEBUG_PROFILES is true, but profiles need operators of the admin " +
        "API, and it has none; set HEADGATE_ADMIN_ADDR, and HEADGATE_ADMIN_ACCESS or " +
        "HEADGATE_ADMIN_OPEN",
    );
  }
}

function chooseOidc(values: AdminValues, problems: string[]): OidcChoice | undefined {
  const { adminOidcIssuer: issuer, adminOidcAudience: audience, adminOidcJwksUrl } = values;
  const given = [issuer, audience, adminOidcJwksUrl].filter((one) => one !== undefined);
  if (given.length === 0) return undefined;
  if (issuer === undefined || audience === undefined || adminOidcJwksUrl === undefined) {
    problems.push(
      "HEADGATE_ADMIN_OIDC_ISSUER, HEADGATE_ADMIN_OIDC_AUDIENCE and HEADGATE_ADMIN_OIDC_JWKS_URL " +
        "belong together; set all three, or none",
    );
    return undefined;
  }
  if (values.adminAccess === undefined) {
    problems.push(
      "HEADGATE_ADMIN_OIDC_ISSUER needs HEADGATE_ADMIN_ACCESS, whose lines " +
        "`subject:` and `group:` give rights to token holders",
    );
  }
  // It is part of principals' names: the text after the `#` is the subject.
  if (!/^[!-"$-~]+$/.test(issuer)) {
    problems.push("HEADGATE_ADMIN_OIDC_ISSUER must be a URL without a fragment");
    return undefined;
  }
  // Keys that arrive in plaintext over a network may be anyone's keys.
  const jwksUrl = parseSafeUrl(adminOidcJwksUrl);
  if (jwksUrl === undefined) {
    problems.push(`HEADGATE_ADMIN_OIDC_JWKS_URL ${safeUrlRule}`);
    return undefined;
  }
  return { issuer, audience, jwksUrl, groupsClaim: values.adminOidcGroupsClaim };
}
