import { createHash, timingSafeEqual } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import {
  type AccessGrant,
  type AccessIdentity,
  accessListBytesMax,
  accessNameCharsMax,
  localName,
  type Principal,
  parseAccessList,
} from "../../core/base/access-list.js";
import type { Clock } from "../../core/base/clock.js";
import { exitCodes, StartFailure } from "../base/failure.js";
import type { Logger } from "../base/logger.js";
import { PathWatcher } from "../base/path-watcher.js";
import { SerializedPoll } from "../base/serialized-poll.js";
import type { AdminChoice } from "../config/admin-choice.js";
import { readErrorWords } from "../config/policy-files.js";
import { createTokenReader, type TokenReader } from "./admin-oidc.js";

/** Identity that a session stores. It contains nothing that grants access by itself. */
export type SessionIdentity =
  /** @property sha256 of a token of the access list, in hexadecimal */
  | { readonly kind: "token"; readonly sha256: string }
  /** Claims of an identity provider's token, with only those groups that the access list names. */
  | {
      readonly kind: "claims";
      readonly issuer: string;
      readonly subject: string;
      readonly groups: readonly string[];
      /** Name shown in the console. The audit log has the subject. */
      readonly shownName?: string;
    };

/** Credentials of a request. */
export interface Credentials {
  /** The header `authorization`. Undefined: none. */
  readonly authorization: string | undefined;
  /** Identity of the session. Counts only without `authorization`. Absent: no session. */
  readonly session?: SessionIdentity;
  /** URIs and DNS names of a verified client certificate. Empty: none. */
  readonly certificateNames: readonly string[];
}

/** The principal of a request, or the reason why it is not authenticated. */
export type Authentication =
  | {
      readonly kind: "principal";
      readonly principal: Principal;
      /** Name to show if the list has no name for the principal. */
      readonly shownName?: string;
    }
  /** The request has no credentials, or unknown ones. */
  | { readonly kind: "missing" | "unknown" }
  /** The token has expired. */
  | { readonly kind: "expired" }
  /** The token cannot be verified now. */
  | { readonly kind: "unavailable" };

/** The identity for a session, or the reason why there is none. */
export type Identification =
  | {
      readonly kind: "identity";
      readonly identity: SessionIdentity;
      /** Time at which the token expires. Undefined: valid until it is removed from the list. */
      readonly untilEpochMs: number | undefined;
    }
  | Exclude<Authentication, { readonly kind: "principal" }>;

/** Access to the admin API. */
export interface AdminAccess {
  /** Whether there is a list. Without one, everyone is authenticated, and sign-in is impossible. */
  readonly hasList: boolean;
  /** Never rejects. */
  authenticate(credentials: Credentials): Promise<Authentication>;
  /**
   * Returns the identity of a token. Never rejects.
   *
   * @param readToken for tokens of the identity provider; default: the reader for tokens of calls
   */
  identify(token: string, readToken?: TokenReader): Promise<Identification>;
  /** Stops following the access list. */
  close(): void;
}

interface AdminAccessParts {
  readonly choice: AdminChoice;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Opens access by a list, which is read now and again when it changes. Without a list, everyone on
 * this machine has access.
 *
 * @throws StartFailure for a list that is wrong, with the exit code of a wrong configuration
 */
export async function openAdminAccess(parts: AdminAccessParts): Promise<AdminAccess> {
  const { accessPath, isOpen } = parts.choice;
  if (accessPath !== undefined) return openList(parts, accessPath);
  const principal: Principal = {
    name: localName,
    grants: [{ role: isOpen ? "operator" : "reader", domains: undefined }],
  };
  return {
    hasList: false,
    authenticate: async () => ({ kind: "principal", principal }),
    identify: async () => ({ kind: "unknown" }),
    close: () => {},
  };
}

async function openList(
  { choice, clock, logger }: AdminAccessParts,
  path: string,
): Promise<AdminAccess> {
  const list = new AccessFile(path, logger);
  const problems = await list.look();
  if (problems.length > 0) {
    const lines = [
      "HEADGATE_ADMIN_ACCESS is invalid:",
      ...problems.map((problem) => `  ${problem}`),
    ];
    throw new StartFailure(exitCodes.usage, lines.join("\n"));
  }
  const looks = new SerializedPoll(() => list.look());
  const onChange = (): void => looks.want();
  const watcher = new PathWatcher({ path, directories: [], clock, onChange });
  const ownReader = choice.oidc && createTokenReader(choice.oidc, clock);
  return {
    hasList: true,
    authenticate: (credentials) => authenticate(list.grants, credentials, ownReader),
    identify: (token, readToken = ownReader) => identify(list.grants, token, readToken),
    close: () => watcher.close(),
  };
}

/** The access list as of the last read without an error. */
class AccessFile {
  readonly #path: string;
  readonly #logger: Logger;
  #grants: readonly AccessGrant[] = [];
  #seen: string | undefined;

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  get grants(): readonly AccessGrant[] {
    return this.#grants;
  }

  /** Reads the list. Returns what is wrong with it, and in that case keeps the previous list. */
  async look(): Promise<readonly string[]> {
    const text = await readAccessText(this.#path);
    const isFirst = this.#seen === undefined;
    const seen = typeof text === "string" ? text : `\n${text.problem}`;
    if (seen === this.#seen) return [];
    this.#seen = seen;
    const parsed =
      typeof text === "string"
        ? parseAccessList(text)
        : ({ kind: "problems", problems: [text.problem] } as const);
    if (parsed.kind === "list") {
      this.#grants = parsed.grants;
      const grantCount = parsed.grants.length;
      this.#logger.info({ event: "adminAccessRead", grantCount }, "The access list is active.");
      return [];
    }
    // At the start, the caller reports the problems, and there is no older list to keep.
    if (!isFirst) {
      this.#logger.error(
        { event: "adminAccessRefused", problems: parsed.problems },
        "The new access list is invalid; the old one stays active.",
      );
    }
    return parsed.problems;
  }
}

async function readAccessText(path: string): Promise<string | { readonly problem: string }> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return { problem: "the path is not a file" };
    if (found.size > accessListBytesMax) {
      return { problem: `the file has more than ${accessListBytesMax} bytes` };
    }
    return await readFile(path, "utf8");
  } catch (error) {
    return { problem: `the file cannot be read: ${readErrorWords(error)}` };
  }
}

/** Prefers a token to a session, and both to a certificate: a token is sent intentionally. */
async function authenticate(
  grants: readonly AccessGrant[],
  { authorization, session, certificateNames }: Credentials,
  readToken: TokenReader | undefined,
): Promise<Authentication> {
  if (authorization !== undefined) {
    const token = /^Bearer +([\w\-.~+/]+=*)$/i.exec(authorization)?.[1];
    if (token === undefined) return { kind: "unknown" };
    const found = await identify(grants, token, readToken);
    return found.kind === "identity" ? authenticateIdentity(grants, found.identity) : found;
  }
  if (session !== undefined) return authenticateIdentity(grants, session);
  if (certificateNames.length === 0) return { kind: "missing" };
  return authenticateByCertificate(grants, certificateNames);
}

/** Returns the identity of a token, from the list or from the claims of the identity provider. */
async function identify(
  grants: readonly AccessGrant[],
  token: string,
  readToken: TokenReader | undefined,
): Promise<Identification> {
  const sha256 = createHash("sha256").update(token).digest("hex");
  if (findToken(grants, sha256) !== undefined) {
    return { kind: "identity", identity: { kind: "token", sha256 }, untilEpochMs: undefined };
  }
  // Three parts separated by dots: the form of an identity provider's tokens.
  const isJwt = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
  if (readToken === undefined || !isJwt) return { kind: "unknown" };
  const verified = await readToken(token);
  switch (verified.kind) {
    case "expired":
    case "unavailable":
      return { kind: verified.kind };
    case "invalid":
      return { kind: "unknown" };
    case "claims": {
      const { issuer, subject, shownName, untilEpochMs } = verified;
      const theirs = new Set(verified.groups);
      const shared = grantsOf(grants, (one) => one.kind === "group" && theirs.has(one.value));
      const named = shared.map(({ identity }) => (identity.kind === "group" ? identity.value : ""));
      const groups = [...new Set(named)];
      return {
        kind: "identity",
        identity: { kind: "claims", issuer, subject, groups, ...(shownName && { shownName }) },
        untilEpochMs,
      };
    }
  }
}

function authenticateIdentity(
  grants: readonly AccessGrant[],
  identity: SessionIdentity,
): Authentication {
  if (identity.kind === "token") {
    const known = findToken(grants, identity.sha256);
    return known === undefined ? { kind: "unknown" } : principalOf(known.name ?? "", [known]);
  }
  const { issuer, subject, groups, shownName } = identity;
  const own = grantsOf(grants, (one) => one.kind === "subject" && one.value === subject);
  const shared = grantsOf(grants, (one) => one.kind === "group" && groups.includes(one.value));
  // The name of a group does not identify a person.
  const name = nameAmong(own);
  const known = principalOf(name ?? `subject:${issuer}#${subject}`, [...own, ...shared]);
  const isNamed = name !== undefined || shownName === undefined;
  return known.kind === "principal" && !isNamed ? { ...known, shownName } : known;
}

/** Names the principal by all names with grants: two certificates may share some of their names. */
function authenticateByCertificate(
  grants: readonly AccessGrant[],
  certificateNames: readonly string[],
): Authentication {
  const found = certificateNames.map((name) => {
    const ofName = grantsOf(grants, (one) => one.kind === "certificate" && one.name === name);
    return { ofName, shown: nameAmong(ofName) ?? `certificate:${name}` };
  });
  const known = found.filter(({ ofName }) => ofName.length > 0);
  const names = new Set(known.map(({ shown }) => shown));
  return principalOf(
    [...names].join(" "),
    known.flatMap(({ ofName }) => ofName),
  );
}

/**
 * Finds the grant of a token. Compares the whole digest with every grant, so that the time taken
 * reveals nothing about the stored digests.
 *
 * @param sha256 of the token, in hexadecimal
 */
function findToken(grants: readonly AccessGrant[], sha256: string): AccessGrant | undefined {
  const digest = Buffer.from(sha256, "hex");
  let found: AccessGrant | undefined;
  for (const grant of grants) {
    if (grant.identity.kind !== "token") continue;
    const isSame = timingSafeEqual(Buffer.from(grant.identity.sha256, "hex"), digest);
    if (isSame) found = grant;
  }
  return found;
}

function grantsOf(
  grants: readonly AccessGrant[],
  isTheirs: (identity: AccessIdentity) => boolean,
): readonly AccessGrant[] {
  return grants.filter(({ identity }) => isTheirs(identity));
}

function nameAmong(grants: readonly AccessGrant[]): string | undefined {
  return grants.find(({ name }) => name !== undefined)?.name;
}

function principalOf(name: string, grants: readonly AccessGrant[]): Authentication {
  if (grants.length === 0) return { kind: "unknown" };
  const principal: Principal = {
    name: shortened(name),
    grants: grants.map(({ role, domains }) => ({ role, domains })),
  };
  return { kind: "principal", principal };
}

/** Shortens a long name: it ends with a digest, so that names with one beginning differ. */
function shortened(name: string): string {
  if (name.length < accessNameCharsMax) return name;
  const digest = createHash("sha256").update(name).digest("hex");
  return `${name.slice(0, accessNameCharsMax - digest.length - 1)}~${digest}`;
}
