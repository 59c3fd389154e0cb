/** Roles in the admin API: read only, or also change. */
const adminRoles = ["reader", "operator"] as const;

/** A role in the admin API. An operator may do everything that a reader may. */
export type AdminRole = (typeof adminRoles)[number];

/** A role and the domains that it applies to. */
export interface RoleGrant {
  readonly role: AdminRole;
  /** Undefined: all domains, and whatever belongs to none, such as the policy as a whole. */
  readonly domains: readonly string[] | undefined;
}

/** The credential or claim that identifies a user. */
export type AccessIdentity =
  /** @property sha256 of the token, in lower-case hexadecimal. The token itself is never stored */
  | { readonly kind: "token"; readonly sha256: string }
  /** @property name a subject alternative name of a client certificate: a URI or a DNS name */
  | { readonly kind: "certificate"; readonly name: string }
  /** A claim in an identity provider's token. */
  | { readonly kind: "subject" | "group"; readonly value: string };

/** One line of an access list. */
export interface AccessGrant extends RoleGrant {
  readonly identity: AccessIdentity;
  /**
   * The name in the audit log, without a colon. Only tokens may share a name. Undefined: the
   * identity is the name.
   */
  readonly name: string | undefined;
}

/** An access list, or the problems in it. */
type ParsedAccessList =
  | { readonly kind: "list"; readonly grants: readonly AccessGrant[] }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Maximum number of lines that grant access. */
export const accessGrantsMax = 10_000;

/** Maximum size of an access list, in bytes. */
export const accessListBytesMax = 4_194_304;

/** Maximum number of problems reported for one list. */
const problemsMax = 20;

/** Maximum number of domains in one line. */
const grantDomainsMax = 1_000;

/** Maximum length of a name, in UTF-16 units. */
export const accessNameCharsMax = 256;

/**
 * Reads an access list: one line for each identity, `ROLE DOMAINS IDENTITY [NAME]`, separated by
 * spaces. `#` starts a comment. Problems contain the number of a line and never its text.
 *
 *     operator  *            token-sha256:9f86...0a08   deploy-bot
 *     reader    shop,search  certificate:spiffe://shop.example/dashboard
 *     operator  shop         subject:alice@shop.example
 *     reader    *            group:engineers
 *
 * A token needs a name, because nothing else shows whose it is. Only tokens may share a name.
 */
export function parseAccessList(text: string): ParsedAccessList {
  const grants: AccessGrant[] = [];
  const problems: string[] = [];
  const seen = new Set<string>();
  const named = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const words = line.trim().split(/\s+/);
    if (words[0] === undefined || words[0] === "" || words[0].startsWith("#")) continue;
    const parsed = parseLine(words);
    if (typeof parsed === "string") problems.push(`line ${i + 1}: ${parsed}`);
    else if (parsed.identity.kind === "token" && seen.has(parsed.identity.sha256)) {
      problems.push(`line ${i + 1}: this token is already on a line above`);
    } else if (isTaken(parsed, named)) {
      problems.push(`line ${i + 1}: another identity above already has this name`);
    } else grants.push(parsed);
    if (typeof parsed === "object" && parsed.identity.kind === "token") {
      seen.add(parsed.identity.sha256);
    }
    if (problems.length >= problemsMax) break;
    if (grants.length > accessGrantsMax) {
      problems.push(`line ${i + 1}: at most ${accessGrantsMax} lines may grant access`);
      break;
    }
  }
  return problems.length > 0 ? { kind: "problems", problems } : { kind: "list", grants };
}

/**
 * Whether another identity has the name of a grant. If not, the name now belongs to this one.
 * Tokens may share a name: a new token is valid beside the old one until all clients have it.
 */
function isTaken({ name, identity }: AccessGrant, named: Map<string, string>): boolean {
  if (name === undefined) return false;
  const whose = identity.kind === "token" ? "token" : JSON.stringify(identity);
  const known = named.get(name) ?? whose;
  named.set(name, known);
  return known !== whose;
}

/** Returns the grant, or the problem with the line. */
function parseLine(words: readonly string[]): AccessGrant | string {
  const [roleText = "", domainsText = "", identityText = "", ...rest] = words;
  const role = adminRoles.find((one) => one === roleText);
  if (role === undefined) return `must start with ${adminRoles.join(" or ")}`;
  if (identityText === "") return "domains and an identity must follow the role";
  const domains = parseDomains(domainsText);
  if (typeof domains === "string") return domains;
  const identity = parseIdentity(identityText);
  if (typeof identity === "string") return identity;
  const named = rest[0]?.startsWith("#") === true ? [] : rest;
  const [name, ...more] = named;
  if (more.length > 0 && more[0]?.startsWith("#") !== true) return "a name must not contain spaces";
  if (name !== undefined && !isName(name)) {
    const most = `at most ${accessNameCharsMax} characters`;
    return `a name has ${most}, no colon, and is not "${localName}"`;
  }
  if (identity.kind === "token" && name === undefined) return "a name must follow the token";
  return { role, domains: domains.list, identity, name };
}

function parseDomains(text: string): { readonly list: readonly string[] | undefined } | string {
  if (text === "*") return { list: undefined };
  const list = text.split(",");
  if (list.some((domain) => domain === "" || domain.includes("*"))) {
    return "domains must be complete names separated by commas, or * for all";
  }
  if (list.length > grantDomainsMax) return `at most ${grantDomainsMax} domains are allowed`;
  return { list };
}

function parseIdentity(text: string): AccessIdentity | string {
  const colon = text.indexOf(":");
  const kind = text.slice(0, colon);
  const value = text.slice(colon + 1);
  if (colon > 0 && value !== "") {
    switch (kind) {
      case "token-sha256":
        if (/^[0-9a-fA-F]{64}$/.test(value)) return { kind: "token", sha256: value.toLowerCase() };
        return "a token must be given as its SHA-256, 64 hexadecimal digits";
      case "certificate":
        return { kind, name: value };
      case "subject":
      case "group":
        return { kind, value };
    }
  }
  return "an identity must be token-sha256:, certificate:, subject: or group: and a value";
}

function isName(text: string): boolean {
  // A colon marks names that are identities. Control characters could affect a terminal.
  if (text === localName || text.length > accessNameCharsMax) return false;
  return !/[:\p{Cc}\p{Cf}]/u.test(text);
}

/** The name of every user on this machine if there is no list. */
export const localName = "local";

/** An authenticated user and their grants. */
export interface Principal {
  /**
   * Unique. A name from the access list, which has no colon, or else the identity in printable
   * ASCII, such as `certificate:spiffe://shop/ann` or `subject:https://id.example#ann`.
   */
  readonly name: string;
  readonly grants: readonly RoleGrant[];
}

/**
 * Whether a user has a role in a domain.
 *
 * @param domain undefined: for what belongs to no single domain, which requires a grant for all
 */
export function mayAct(
  { grants }: Principal,
  role: AdminRole,
  domain: string | undefined,
): boolean {
  return grants.some(
    (grant) =>
      (grant.role === "operator" || grant.role === role) &&
      (grant.domains === undefined || (domain !== undefined && grant.domains.includes(domain))),
  );
}

/** Whether a user has a role in any domain. */
export function mayActSomewhere({ grants }: Principal, role: AdminRole): boolean {
  return grants.some((grant) => grant.role === "operator" || grant.role === role);
}

/** Returns the domains in which a user has a role. Undefined: all. */
export function visibleDomains(
  { grants }: Principal,
  role: AdminRole = "reader",
): readonly string[] | undefined {
  const theirs = grants.filter((grant) => grant.role === "operator" || grant.role === role);
  if (theirs.some(({ domains }) => domains === undefined)) return undefined;
  return [...new Set(theirs.flatMap(({ domains }) => domains ?? []))];
}
