import { describe, expect, it } from "vitest";
import {
  type AuditFacts,
  auditEntry,
  auditSideCharsMax,
  readAuditEntry,
  reasonCharsMax,
} from "../../../../src/core/base/audit-entry.js";
import { auditBytesMax } from "../../../../src/fleet/records/shared-records.js";

const facts: AuditFacts = {
  actor: { name: "ann", role: "operator" },
  action: "SetOverride",
  subject: "o-1",
  domain: "shop",
  before: undefined,
  after: { hits: 5 },
  reason: "a contract",
  replica: "r1",
};

describe("auditEntry()", () => {
  it("is read as it was written", () => {
    expect(readAuditEntry(auditEntry(facts))).toEqual({
      author: "ann",
      role: "operator",
      action: "SetOverride",
      subject: "o-1",
      domain: "shop",
      before: "",
      after: '{"hits":5}',
      reason: "a contract",
      replica: "r1",
    });
  });

  it.each(["x", "\u0000", '"', "語", "\ud83d"])("fits whatever it holds: %j", (letter) => {
    const text = letter.repeat(100_000);
    const name = letter.repeat(256);
    const long = { ...facts, subject: text, before: text, after: { text }, reason: text };
    const entry = auditEntry({ ...long, actor: { name, role: "operator" } });
    expect(Buffer.byteLength(JSON.stringify(entry))).toBeLessThanOrEqual(auditBytesMax);
    expect(readAuditEntry(entry).reason).toHaveLength(reasonCharsMax);
    expect(readAuditEntry(entry).before).toHaveLength(auditSideCharsMax + 3);
  });

  it("reads what another version wrote as far as it can", () => {
    expect(readAuditEntry({ author: 5, domain: 3 })).toMatchObject({
      author: "",
      domain: undefined,
    });
  });
});
