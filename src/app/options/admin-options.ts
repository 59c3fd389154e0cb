import { optionalAddressOption } from "./address-option.js";
import { optionalTextOption, switchOption, textOption, wholeNumberOption } from "./option.js";

const section = "Admin" as const;

/** Where people and their tools ask and change things, and who may. */
export const adminOptionRows = {
  // Not called a port, as the control port's: what ends in `_PORT` Kubernetes sets by itself.
  adminAddress: optionalAddressOption({
    section,
    env: "HEADGATE_ADMIN_ADDR",
    flag: "admin-addr",
    defaultText: "127.0.0.1:8082",
    defaultValue: { host: "127.0.0.1", port: 8_082 },
    docs:
      "The address of the admin API, `host:port`. `:port` binds all addresses, " +
      "port 0 picks a free port. On other than loopback addresses it needs " +
      "HEADGATE_ADMIN_ACCESS, and it uses the TLS settings of the gRPC port. If " +
      "the port is in use, Headgate logs a warning and runs without it. Empty: no " +
      "admin API.",
  }),
  adminAccess: optionalTextOption({
    section,
    env: "HEADGATE_ADMIN_ACCESS",
    flag: "admin-access",
    valueName: "PATH",
    docs:
      "The access list of the admin API: a file with a line `ROLE DOMAINS IDENTITY " +
      "NAME` for each caller. Headgate reads it again when it changes. Nobody else " +
      "may call.",
  }),
  adminOpen: switchOption({
    section,
    env: "HEADGATE_ADMIN_OPEN",
    flag: "admin-open",
    defaultValue: false,
    docs:
      "Without HEADGATE_ADMIN_ACCESS: whether everybody on this machine may also " +
      "make changes. By default they may only read.",
  }),
  adminCallsPerSecond: wholeNumberOption({
    section,
    env: "HEADGATE_ADMIN_CALLS_PER_SECOND",
    flag: "admin-calls-per-second",
    min: 1,
    max: 100_000,
    defaultValue: 50,
    docs: "Calls per second of one caller of the admin API, with bursts of twice as many.",
  }),
  auditLog: switchOption({
    section,
    env: "HEADGATE_AUDIT_LOG",
    flag: "audit-log",
    defaultValue: false,
    docs:
      "Whether each audit log entry is also logged (`event` is `audit`), so that " +
      "you can keep it elsewhere. An entry contains what was changed, including " +
      "callers' values.",
  }),
  adminOidcIssuer: optionalTextOption({
    section,
    env: "HEADGATE_ADMIN_OIDC_ISSUER",
    flag: "admin-oidc-issuer",
    valueName: "URL",
    docs:
      "An OpenID Connect issuer whose tokens are accepted. `subject:` and `group:` " +
      "lines of HEADGATE_ADMIN_ACCESS give rights to their holders.",
  }),
  adminOidcAudience: optionalTextOption({
    section,
    env: "HEADGATE_ADMIN_OIDC_AUDIENCE",
    flag: "admin-oidc-audience",
    valueName: "NAME",
    docs: "The audience that such a token must contain.",
  }),
  adminOidcJwksUrl: optionalTextOption({
    section,
    env: "HEADGATE_ADMIN_OIDC_JWKS_URL",
    flag: "admin-oidc-jwks-url",
    valueName: "URL",
    docs: "The URL of the issuer's keys. While they cannot be read, its tokens are refused.",
  }),
  adminOidcGroupsClaim: textOption({
    section,
    env: "HEADGATE_ADMIN_OIDC_GROUPS_CLAIM",
    flag: "admin-oidc-groups-claim",
    valueName: "NAME",
    defaultValue: "groups",
    docs: "The claim that contains the groups of a token's subject.",
  }),
} as const;
