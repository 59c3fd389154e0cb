import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { AuditEntry } from "../../gen/headgate/admin/v1/admin_pb.js";

/**
 * What an entry of the audit log is about: of an override whom it is for, in place of its id; of a
 * top-up or a refund, the account.
 */
export function auditSubject({
  subject,
  before,
  after,
}: Pick<AuditEntry, "subject" | "before" | "after">): string {
  const { domain, entries, isPrefix, values } = { ...fieldsOf(before), ...fieldsOf(after) };
  if (Array.isArray(values)) return [subject, ...values.map(String)].join(" ");
  const pairs = Array.isArray(entries) ? entries.flatMap(readPair) : [];
  if (typeof domain !== "string" || pairs.length === 0) return subject;
  return `${domain} ${formatEntries(pairs)}${isPrefix === true ? " and all below" : ""}`;
}

/** Nothing where there was nothing, or where a long one was cut and is no JSON any more. */
function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? { ...value } : {};
  } catch {
    return {};
  }
}

function readPair(pair: unknown): readonly DescriptorEntry[] {
  const [key, value]: readonly unknown[] = Array.isArray(pair) ? pair : [];
  return typeof key === "string" && typeof value === "string" ? [{ key, value }] : [];
}
