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

/** Who signed in, as far as a session keeps it: nothing that would open a door by itself. */
export type SessionIdentity =
  /** @property sha256 of a token of the access list, in hexadecimal */
  | { readonly kind: "token"; readonly sha256: string }
  /** Claims of an identity provider's token; of the groups, those that the list names. */
  | {
      readonly kind: "claims";
      readonly issuer: string;
      readonly subject: string;
      readonly groups: readonly string[];
      /** What to call them in the console; the audit log has the subject. */
      readonly shownName?: string;
    };

/** What a request brings along to be known by. */
export interface Credentials {
  /** The header `authorization`; undefined: none. */
  readonly authorization: string | undefined;
  /** Who signed in before; counts without `authorization`. Absent: nobody. */
  readonly session?: SessionIdentity;
  /** URIs and DNS names of a client certificate that was checked; empty: none. */
  readonly certificateNames: readonly string[];
}

/** Who a request is of, or why nobody known. */
export type Authentication =
  | {
      readonly kind: "principal";
      readonly principal: Principal;
      /** What to call who has no name in the list. */
      readonly shownName?: string;
    }
  /** It brings nothing along, or what is not known. */
  | { readonly kind: "missing" | "unknown" }
  /** Its token has expired. */
  | { readonly kind: "expired" }
  /** Its token cannot be looked at now. */
  | { readonly kind: "unavailable" };

/** What a session may be made of, or why none is. */
export type Identification =
  | {
      readonly kind: "identity";
      readonly identity: SessionIdentity;
      /** Until when the token holds; undefined: until it is taken from the list. */
      readonly untilEpochMs: number | undefined;
    }
  | Exclude<Authentication, { readonly kind: "principal" }>;

/** Who may call the admin API. */
export interface AdminAccess {
  /** Whether there is a list; without one everybody is known, and nobody signs in. */
  readonly hasList: boolean;
  /** Never rejects. */
  authenticate(credentials: Credentials): Promise<Authentication>;
  /**
   * Whose token this is. Never rejects.
   *
   * @param readToken for tokens of the identity provider; default: as calls with them are read
   */
  identify(token: string, readToken?: TokenReader): Promise<Identification>;
  /** Follows the access list no more. */
  close(): void;
}

interface AdminAccessParts {
  readonly choice: AdminChoice;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Opens access: by a list, which is read now and again when it changes; without one, everybody on
 * this machine.
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

/** The access list as it was read last without a fault. */
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

  /** Reads it; answers what is wrong with it, and then keeps what it knows. */
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
    // At start the caller reports it, and there is nothing older to keep.
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

/** A token wins over a session, and both over a certificate: whoever sends one means it. */
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

/** Whose token this is, by the list or by what the identity provider says in it. */
async function identify(
  grants: readonly AccessGrant[],
  token: string,
  readToken: TokenReader | undefined,
): Promise<Identification> {
  const sha256 = createHash("sha256").update(token).digest("hex");
  if (findToken(grants, sha256) !== undefined) {
    return { kind: "identity", identity: { kind: "token", sha256 }, untilEpochMs: undefined };
  }
  // Three parts between dots: what an identity provider makes.
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
  // A group's name is nobody's.
  const name = nameAmong(own);
  const known = principalOf(name ?? `subject:${issuer}#${subject}`, [...own, ...shared]);
  const isNamed = name !== undefined || shownName === undefined;
  return known.kind === "principal" && !isNamed ? { ...known, shownName } : known;
}

/** Two certificates may share some names: they are called by all that give them something. */
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
 * The grant of a token. Each is compared to its end, whichever it is: what takes time tells nothing
 * of what is stored.
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

/** Long names end with a digest, so that two which begin alike stay two. */
function shortened(name: string): string {
  if (name.length < accessNameCharsMax) return name;
  const digest = createHash("sha256").update(name).digest("hex");
  return `${name.slice(0, accessNameCharsMax - digest.length - 1)}~${digest}`;
}
