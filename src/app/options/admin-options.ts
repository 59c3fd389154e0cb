import { optionalAddressOption } from "./address-option.js";
import { optionalTextOption, switchOption, textOption, wholeNumberOption } from "./option.js";

/** Where people and tools reach the admin API, and who may use it. */
export const adminOptionRows = {
  // Not named a port, like the control port's: Kubernetes itself sets names that end in `_PORT`.
  adminAddress: optionalAddressOption({
    env: "HEADGATE_ADMIN_ADDR",
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
    env: "HEADGATE_ADMIN_ACCESS",
    valueName: "PATH",
    docs:
      "The access list of the admin API: a file with a line `ROLE DOMAINS IDENTITY " +
      "NAME` for each caller. Headgate reads it again when it changes. Nobody else " +
      "may call.",
  }),
  adminOpen: switchOption({
    env: "HEADGATE_ADMIN_OPEN",
    defaultValue: false,
    docs:
      "Without HEADGATE_ADMIN_ACCESS: whether everybody on this machine may also " +
      "make changes. By default they may only read.",
  }),
  adminCallsPerSecond: wholeNumberOption({
    env: "HEADGATE_ADMIN_CALLS_PER_SECOND",
    range: [1, 100_000],
    defaultValue: 50,
    docs: "Calls per second of one caller of the admin API, with bursts of twice as many.",
  }),
  auditLog: switchOption({
    env: "HEADGATE_AUDIT_LOG",
    defaultValue: false,
    docs:
      "Whether each audit log entry is also logged (`event` is `audit`), so that " +
      "you can keep it elsewhere. An entry contains what was changed, including " +
      "callers' values.",
  }),
  adminOidcIssuer: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_ISSUER",
    valueName: "URL",
    docs:
      "An OpenID Connect issuer whose tokens are accepted. `subject:` and `group:` " +
      "lines of HEADGATE_ADMIN_ACCESS give rights to their holders.",
  }),
  adminOidcAudience: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_AUDIENCE",
    valueName: "NAME",
    docs: "The audience that such a token must contain.",
  }),
  adminOidcJwksUrl: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_JWKS_URL",
    valueName: "URL",
    docs: "The URL of the issuer's keys. While they cannot be read, its tokens are refused.",
  }),
  adminOidcGroupsClaim: textOption({
    env: "HEADGATE_ADMIN_OIDC_GROUPS_CLAIM",
    valueName: "NAME",
    defaultValue: "groups",
    docs: "The claim that contains the groups of a token's subject.",
  }),
} as const;
