import { expect, it } from "vitest";
import { auditSubject } from "../../../../src/console/data/audit-subject.js";

it("says whom an override is for, and else what the entry names", () => {
  const after = JSON.stringify({ domain: "shop", entries: [["user", "ann"]], isPrefix: true });
  expect(auditSubject({ subject: "o-1", before: "", after })).toBe("shop user=ann and all below");
  expect(auditSubject({ subject: "o-1", before: after, after: "" })).toContain("user=ann");
  for (const text of ["", "[1", "null", "7", '{"domain":"shop","entries":[[1]]}']) {
    expect(auditSubject({ subject: "policy", before: "", after: text })).toBe("policy");
  }
});
