/** What somebody may do by the admin API: look, or also change. */
const adminRoles = ["reader", "operator"] as const;

/** One of them. An operator may do what a reader may. */
export type AdminRole = (typeof adminRoles)[number];

/** Where a role holds. */
export interface RoleGrant {
  readonly role: AdminRole;
  /** Undefined: in all domains, and in what belongs to none, such as the policy as a whole. */
  readonly domains: readonly string[] | undefined;
}

/** By what somebody is known. */
export type AccessIdentity =
  /** @property sha256 of the token, in lower-case hexadecimal: the token itself is kept nowhere */
  | { readonly kind: "token"; readonly sha256: string }
  /** @property name one of a client certificate's alternative names: a URI or a DNS name */
  | { readonly kind: "certificate"; readonly name: string }
  /** Claims of an identity provider's token. */
  | { readonly kind: "subject" | "group"; readonly value: string };

/** One line of an access list. */
export interface AccessGrant extends RoleGrant {
  readonly identity: AccessIdentity;
  /**
   * What the audit log calls them: nobody else has the name, and none has a colon. Undefined: by
   * what they are known.
   */
  readonly name: string | undefined;
}

/** An access list, or everything that is wrong with it. */
type ParsedAccessList =
  | { readonly kind: "list"; readonly grants: readonly AccessGrant[] }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** The most lines that give something. */
export const accessGrantsMax = 10_000;

/** The longest access list, in bytes. */
export const accessListBytesMax = 4_194_304;

/** The most problems that are told of one list. */
const problemsMax = 20;

/** The most domains of one line. */
const grantDomainsMax = 1_000;

/** The longest name of somebody, in UTF-16 units. */
export const accessNameCharsMax = 256;

/**
 * Reads an access list: a line for each identity, `ROLE DOMAINS IDENTITY [NAME]`, with blanks
 * between; `#` begins a comment. Problems say a line and never what stands in it.
 *
 *     operator  *            token-sha256:9f86...0a08   deploy-bot
 *     reader    shop,search  certificate:spiffe://shop.example/dashboard
 *     operator  shop         subject:alice@shop.example
 *     reader    *            group:engineers
 *
 * A token needs a name, since nothing else says whose it is. Two identities never have the same.
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
 * Whether the name of a grant is that of another identity; else it is this one's from now on.
 * Tokens may share one: a new one stands beside the old one until all have it.
 */
function isTaken({ name, identity }: AccessGrant, named: Map<string, string>): boolean {
  if (name === undefined) return false;
  const whose = identity.kind === "token" ? "token" : JSON.stringify(identity);
  const known = named.get(name) ?? whose;
  named.set(name, known);
  return known !== whose;
}

/** A grant, or what is wrong with the line. */
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
  // A colon is in what others are known by; and nothing that a terminal would act on.
  if (text === localName || text.length > accessNameCharsMax) return false;
  return !/[:\p{Cc}\p{Cf}]/u.test(text);
}

/** What everybody on this machine is called where there is no list. */
export const localName = "local";

/** Somebody who is known, and what they may do. */
export interface Principal {
  /**
   * Nobody else's: a name of the access list, which has no colon, or what they are known by, such
   * as `certificate:spiffe://shop/ann` or `subject:https://id.example#ann`, in printable ASCII.
   */
  readonly name: string;
  readonly grants: readonly RoleGrant[];
}

/**
 * Whether somebody has a role.
 *
 * @param domain undefined: in what belongs to no domain alone, which takes a grant of all
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

/** Whether somebody has a role anywhere at all. */
export function mayActSomewhere({ grants }: Principal, role: AdminRole): boolean {
  return grants.some((grant) => grant.role === "operator" || grant.role === role);
}

/** The domains that somebody may look at, or change something in; undefined: all. */
export function visibleDomains(
  { grants }: Principal,
  role: AdminRole = "reader",
): readonly string[] | undefined {
  const theirs = grants.filter((grant) => grant.role === "operator" || grant.role === role);
  if (theirs.some(({ domains }) => domains === undefined)) return undefined;
  return [...new Set(theirs.flatMap(({ domains }) => domains ?? []))];
}
