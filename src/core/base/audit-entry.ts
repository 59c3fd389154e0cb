import type { JsonObject, JsonValue } from "./json.js";

/** Who does something by the admin API. */
export interface AuditActor {
  /** What a token, a certificate or an identity provider calls them. */
  readonly name: string;
  readonly role: "reader" | "operator";
}

/** What an entry of the audit log says. */
export interface AuditFacts {
  readonly actor: AuditActor;
  /** The method, such as `SetOverride`. */
  readonly action: string;
  /** What it was done to: a domain, an override, a service. Limits who may read the entry. */
  readonly subject: string;
  /** The domain that it is about; undefined: all of them. */
  readonly domain: string | undefined;
  /** How it was, and is; undefined: nothing was, or is, there. */
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
  readonly reason: string;
  /** The replica that was told. */
  readonly replica: string;
}

/** The longest reason, and subject, in UTF-16 units. */
export const reasonCharsMax = 1_000;

/**
 * Before and after are cut where they are longer, in UTF-16 units of JSON: the records themselves
 * are the place for whole policies. Three bytes of UTF-8 are the most that a unit takes, so an
 * entry stays below `auditBytesMax`.
 */
export const auditSideCharsMax = 8_000;

/** An entry as records keep it. */
export function auditEntry(facts: AuditFacts): JsonObject {
  const { actor, action, subject, domain, before, after, reason, replica } = facts;
  return {
    author: actor.name,
    role: actor.role,
    action,
    subject: subject.slice(0, reasonCharsMax),
    reason: reason.slice(0, reasonCharsMax),
    replica,
    ...(domain === undefined ? {} : { domain }),
    ...(before === undefined ? {} : { before: side(before) }),
    ...(after === undefined ? {} : { after: side(after) }),
  };
}

/** An entry read back. */
export interface ReadAuditEntry {
  readonly author: string;
  readonly role: string;
  readonly action: string;
  readonly subject: string;
  readonly domain: string | undefined;
  /** As JSON; empty: nothing was, or is, there. */
  readonly before: string;
  readonly after: string;
  readonly reason: string;
  readonly replica: string;
}

/** What an entry says; what another version has left out is empty. */
export function readAuditEntry(value: JsonObject): ReadAuditEntry {
  const { domain } = value;
  return {
    author: textOf(value["author"]),
    role: textOf(value["role"]),
    action: textOf(value["action"]),
    subject: textOf(value["subject"]),
    domain: typeof domain === "string" ? domain : undefined,
    before: textOf(value["before"]),
    after: textOf(value["after"]),
    reason: textOf(value["reason"]),
    replica: textOf(value["replica"]),
  };
}

function side(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length <= auditSideCharsMax ? text : `${text.slice(0, auditSideCharsMax)}...`;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
