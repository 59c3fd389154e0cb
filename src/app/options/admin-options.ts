import { optionalAddressOption } from "./address-option.js";
import { optionalTextOption, switchOption, textOption, wholeNumberOption } from "./option.js";

/** Where people and their tools ask and change things, and who may. */
export const adminOptionRows = {
  // Not called a port, as the control port's: what ends in `_PORT` Kubernetes sets by itself.
  adminAddress: optionalAddressOption({
    env: "HEADGATE_ADMIN_ADDR",
    defaultText: "127.0.0.1:8082",
    defaultValue: { host: "127.0.0.1", port: 8_082 },
    docs:
      "Where the admin API listens, `host:port`; `:port` is all addresses, port 0 a free one. " +
      "Beyond this machine it needs HEADGATE_ADMIN_ACCESS, and has TLS as the gRPC port. A taken " +
      "one is warned of, and the service goes on. Empty: no admin API.",
  }),
  adminAccess: optionalTextOption({
    env: "HEADGATE_ADMIN_ACCESS",
    valueName: "PATH",
    docs:
      "Who may call the admin API: a file with a line `ROLE DOMAINS IDENTITY NAME` for each. " +
      "Read again when it changes. With it nobody else may call, from wherever.",
  }),
  adminOpen: switchOption({
    env: "HEADGATE_ADMIN_OPEN",
    defaultValue: false,
    docs:
      "Without HEADGATE_ADMIN_ACCESS: whether everybody on this machine may also change things. " +
      "They may only look by default.",
  }),
  adminCallsPerSecond: wholeNumberOption({
    env: "HEADGATE_ADMIN_CALLS_PER_SECOND",
    range: [1, 100_000],
    defaultValue: 50,
    docs: "Calls a second of one caller of the admin API; twice as many at once.",
  }),
  auditLog: switchOption({
    env: "HEADGATE_AUDIT_LOG",
    defaultValue: false,
    docs:
      "Whether each entry for the audit log is also a line of the log (`event` is `audit`), to " +
      "be kept elsewhere. It holds what was changed, and so callers' values.",
  }),
  adminOidcIssuer: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_ISSUER",
    valueName: "URL",
    docs:
      "An OpenID Connect issuer whose tokens are taken: `subject:` and `group:` lines of " +
      "HEADGATE_ADMIN_ACCESS say what their holders may do.",
  }),
  adminOidcAudience: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_AUDIENCE",
    valueName: "NAME",
    docs: "The audience that such a token must name.",
  }),
  adminOidcJwksUrl: optionalTextOption({
    env: "HEADGATE_ADMIN_OIDC_JWKS_URL",
    valueName: "URL",
    docs: "Where the issuer's keys are. While they cannot be read such tokens are refused.",
  }),
  adminOidcGroupsClaim: textOption({
    env: "HEADGATE_ADMIN_OIDC_GROUPS_CLAIM",
    valueName: "NAME",
    defaultValue: "groups",
    docs: "The claim that holds the groups of a token's subject.",
  }),
} as const;
