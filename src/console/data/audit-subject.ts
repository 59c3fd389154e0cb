import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import type { AuditEntry } from "../../gen/headgate/admin/v1/admin_pb.js";

/**
 * Returns the subject of an audit log entry: for an override, its keys instead of its id; for a
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

/** Returns no fields for an empty record, and for a truncated one, which is not valid JSON. */
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
