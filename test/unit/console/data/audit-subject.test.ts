import { expect, it } from "vitest";
import { auditSubject } from "../../../../src/console/data/audit-subject.js";

it("says whom an override is for, and else what the entry names", () => {
  const after = JSON.stringify({ domain: "shop", entries: [["user", "ann"]], isPrefix: true });
  expect(auditSubject({ subject: "o-1", before: "", after })).toBe("shop user=ann and all below");
  expect(auditSubject({ subject: "o-1", before: after, after: "" })).toContain("user=ann");
  const topUp = JSON.stringify({ id: "t-1", values: ["research", "gpt-4o"], amount: 5 });
  const ofAccount = { subject: "team-month", before: "", after: topUp };
  expect(auditSubject(ofAccount)).toBe("team-month research gpt-4o");
  for (const text of ["", "[1", "null", "7", '{"domain":"shop","entries":[[1]]}']) {
    expect(auditSubject({ subject: "policy", before: "", after: text })).toBe("policy");
  }
});
