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
import type { AdminChoice, OidcChoice } from "../config/admin-choice.js";
import { readErrorWords } from "../config/policy-files.js";
import type { TokenReader } from "./admin-oidc.js";

/** What a request brings along to be known by. */
export interface Credentials {
  /** The header `authorization`; undefined: none. */
  readonly authorization: string | undefined;
  /** URIs and DNS names of a client certificate that was checked; empty: none. */
  readonly certificateNames: readonly string[];
}

/** Who a request is of, or why nobody known. */
export type Authentication =
  | { readonly kind: "principal"; readonly principal: Principal }
  /** It brings nothing along, or what is not known. */
  | { readonly kind: "missing" | "unknown" }
  /** Its token has expired. */
  | { readonly kind: "expired" }
  /** Its token cannot be looked at now. */
  | { readonly kind: "unavailable" };

/** Who may call the admin API. */
export interface AdminAccess {
  /** Never rejects. */
  authenticate(credentials: Credentials): Promise<Authentication>;
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
  return { authenticate: async () => ({ kind: "principal", principal }), close: () => {} };
}

async function openList(
  { choice, clock, logger }: AdminAccessParts,
  path: string,
): Promise<AdminAccess> {
  const list = new AccessFile(path, logger);
  const problems = await list.look();
  if (problems.length > 0) {
    const lines = ["HEADGATE_ADMIN_ACCESS is wrong:", ...problems.map((problem) => `  ${problem}`)];
    throw new StartFailure(exitCodes.usage, lines.join("\n"));
  }
  const readToken = choice.oidc && (await loadTokenReader(choice.oidc, clock));
  const looks = new SerializedPoll(() => list.look());
  const onChange = (): void => looks.want();
  const watcher = new PathWatcher({ path, directories: [], clock, onChange });
  return {
    authenticate: (credentials) => authenticate(list.grants, credentials, readToken),
    close: () => watcher.close(),
  };
}

/** The library is loaded here and now: only who takes tokens of a provider needs it. */
async function loadTokenReader(oidc: OidcChoice, clock: Clock): Promise<TokenReader> {
  const { createTokenReader } = await import("./admin-oidc.js");
  return createTokenReader(oidc, clock);
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
        "The new access list is wrong, and the old one stays active.",
      );
    }
    return parsed.problems;
  }
}

async function readAccessText(path: string): Promise<string | { readonly problem: string }> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return { problem: "it names something that is not a file" };
    if (found.size > accessListBytesMax) {
      return { problem: `the file has more than ${accessListBytesMax} bytes` };
    }
    return await readFile(path, "utf8");
  } catch (error) {
    return { problem: `the file cannot be read: ${readErrorWords(error)}` };
  }
}

/** A token wins over a certificate: whoever sends one means to be known by it. */
async function authenticate(
  grants: readonly AccessGrant[],
  { authorization, certificateNames }: Credentials,
  readToken: TokenReader | undefined,
): Promise<Authentication> {
  if (authorization !== undefined) {
    const token = /^Bearer +([\w\-.~+/]+=*)$/i.exec(authorization)?.[1];
    if (token === undefined) return { kind: "unknown" };
    const known = findToken(grants, token);
    if (known !== undefined) return principalOf(known.name ?? "", [known]);
    // Three parts between dots: what an identity provider makes.
    const isJwt = /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
    if (readToken === undefined || !isJwt) return { kind: "unknown" };
    return authenticateByToken(grants, token, readToken);
  }
  if (certificateNames.length === 0) return { kind: "missing" };
  return authenticateByCertificate(grants, certificateNames);
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
 */
function findToken(grants: readonly AccessGrant[], token: string): AccessGrant | undefined {
  const digest = createHash("sha256").update(token).digest();
  let found: AccessGrant | undefined;
  for (const grant of grants) {
    if (grant.identity.kind !== "token") continue;
    const isSame = timingSafeEqual(Buffer.from(grant.identity.sha256, "hex"), digest);
    if (isSame) found = grant;
  }
  return found;
}

async function authenticateByToken(
  grants: readonly AccessGrant[],
  token: string,
  readToken: TokenReader,
): Promise<Authentication> {
  const verified = await readToken(token);
  switch (verified.kind) {
    case "expired":
    case "unavailable":
      return { kind: verified.kind };
    case "invalid":
      return { kind: "unknown" };
    case "claims": {
      const { issuer, subject, groups } = verified;
      const own = grantsOf(grants, (one) => one.kind === "subject" && one.value === subject);
      const shared = grantsOf(grants, (one) => one.kind === "group" && groups.includes(one.value));
      // A group's name is nobody's.
      return principalOf(nameAmong(own) ?? `subject:${issuer}#${subject}`, [...own, ...shared]);
    }
  }
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
