import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { createStyle } from "../../../../src/app/base/style.js";
import { drawAudit } from "../../../../src/cli/rollout/audit.js";
import {
  type AuditEntrySchema,
  ListAuditResponseSchema,
} from "../../../../src/gen/headgate/admin/v1/admin_pb.js";

type EntryInit = MessageInitShape<typeof AuditEntrySchema>;

function draw(entry: EntryInit, columnsMax = Number.POSITIVE_INFINITY): readonly string[] {
  const common = { time: timestampFromMs(1_795_262_400_000), author: "ann", reason: "a test" };
  const answer = create(ListAuditResponseSchema, { entries: [{ ...common, ...entry }] });
  return drawAudit(answer, { style: createStyle(false), columnsMax });
}

/** An override as records have it. */
function side(effect: object, more: object = {}): string {
  return JSON.stringify({ domain: "shop", entries: [["user", "ann"]], effect, ...more });
}

describe("drawAudit()", () => {
  it.each([
    ["", side({ kind: "frozen" }), "shop user=ann", "none → frozen"],
    [side({ kind: "frozen" }), "", "shop user=ann", "frozen → none"],
    [
      side({ kind: "multiplier", by: 2 }, { isPrefix: true }),
      side({ kind: "amount", hits: 2_000, burst: 20 }, { isPrefix: true, limitName: "pace" }),
      "shop user=ann, and all below (pace)",
      "times 2 → 2,000 hits, burst 20",
    ],
    [
      '{"openBelowRatio":0.4,"closeAboveRatio":0.8}',
      '{"openBelowRatio":0.5,"closeAboveRatio":0.9}',
      "id",
      "0.4 to 0.8 → 0.5 to 0.9",
    ],
    ['{"version":"a0d2"}', '{"version":"b1"}', "id", "a0d2 → b1"],
    ["", '{"version":"b1","shadow":true}', "id", "none → b1 beside"],
  ])("says what changed from %s to %s", (before, after, subject, change) => {
    const [, line] = draw({ action: "Change", subject: "id", before, after });
    expect(line).toBe(`2026-11-21T12:00:00Z  ann  Change  ${subject}  ${change}  a test`);
  });

  it.each([
    ['[{"key":"2g4:shop"}]', ""],
    ['{"domain":"shop","entries":[["user', ""],
    ["7", '{"effect":{"kind":"later"}}'],
    ['{"entries":[1,[2,3],["a"]],"domain":"shop"}', "null"],
  ])("leaves out what it cannot read: %s, %s", (before, after) => {
    const lines = draw({ action: "Later", subject: "id", before, after });
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain("Later");
  });

  it("takes two lines for each in a narrow window, and keeps the whole reason", () => {
    const reason = "launch week, as agreed with everybody in a very long meeting";
    const after = side({ kind: "multiplier", by: 2 });
    const lines = draw({ action: "SetOverride", subject: "o-1", after, reason }, 60);
    expect(lines).toEqual([
      "2026-11-21T12:00:00Z  ann  SetOverride  shop user=ann",
      "  none → times 2: launch week, as agreed with everybody in a",
      "  very long meeting",
    ]);
  });

  it("says that nothing was changed", () => {
    const none = create(ListAuditResponseSchema);
    expect(drawAudit(none, { style: createStyle(false), columnsMax: 80 })).toEqual([
      "Nothing was changed.",
    ]);
  });
});
