import type { JsonObject, JsonValue } from "./json.js";

/** The user who performs an action through the admin API. */
export interface AuditActor {
  /** The name from a token, a certificate or an identity provider. */
  readonly name: string;
  readonly role: "reader" | "operator";
}

/** The contents of an entry of the audit log. */
export interface AuditFacts {
  readonly actor: AuditActor;
  /** The method, such as `SetOverride`. */
  readonly action: string;
  /** The object of the action: a domain, an override, a service. Limits who may read the entry. */
  readonly subject: string;
  /** The domain that it concerns. Undefined: all domains. */
  readonly domain: string | undefined;
  /** The states before and after the action. Undefined: the object did not exist. */
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
  readonly reason: string;
  /** The replica that received the call. */
  readonly replica: string;
}

/** Maximum length of a reason and of a subject, in UTF-16 units. */
export const reasonCharsMax = 1_000;

/**
 * Maximum length of `before` and `after`, in UTF-16 units of JSON. The rest is cut, because the
 * records themselves contain whole policies. A unit takes at most three bytes of UTF-8, so an entry
 * stays below `auditBytesMax`.
 */
export const auditSideCharsMax = 8_000;

/** Returns an entry in the form in which records store it. */
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
  /** As JSON. Empty: the object did not exist. */
  readonly before: string;
  readonly after: string;
  readonly reason: string;
  readonly replica: string;
}

/** Reads a stored entry. Fields that another version omitted are empty. */
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
