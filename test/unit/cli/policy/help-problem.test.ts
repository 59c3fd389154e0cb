import { describe, expect, it } from "vitest";
import {
  findHelp,
  helpIds,
  isIdLike,
  renderIdHelp,
} from "../../../../src/cli/policy/help-problem.js";
import { problemExamples } from "../../../../src/cli/policy/problem-examples.js";
import { errorRows } from "../../../../src/core/base/errors.js";
import { doctorProblemRows } from "../../../../src/doctor/doctor-problems.js";
import { generateProblemRows } from "../../../../src/generate/base/generate-problems.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { problemRows } from "../../../../src/policy/problems/problem.js";

describe("findHelp()", () => {
  it("knows every id and code, each once", () => {
    const all = [problemRows, generateProblemRows, doctorProblemRows, errorRows].flatMap((rows) =>
      Object.keys(rows),
    );
    expect([...helpIds].sort()).toEqual([...new Set(all)].sort());
    expect(all.length).toBe(helpIds.length);
    for (const id of all) {
      const found = findHelp(id);
      expect(isIdLike(id), id).toBe(true);
      expect(found).toMatchObject({ kind: "found", help: { id } });
      if (found.kind !== "found") continue;
      const text = renderIdHelp(found.help);
      expect(text.startsWith(`${id}  `)).toBe(true);
      expect(found.help.title).toMatch(/\.$/);
      expect(found.help.remedy).toMatch(/\.$/);
    }
  });

  it("takes ids in lower case, and suggests the nearest of what is unknown", () => {
    expect(findHelp("hg231")).toMatchObject({ kind: "found", help: { id: "HG231" } });
    expect(findHelp("STORE_TIMEUOT")).toEqual({ kind: "unknown", nearest: "STORE_TIMEOUT" });
    expect(findHelp("NOTHING_LIKE_IT_AT_ALL")).toEqual({ kind: "unknown", nearest: undefined });
  });
});

describe("the examples of ids", () => {
  it.each(Object.keys(problemExamples))("of %s is wrong in that way, and right as shown", (id) => {
    const { wrong = "", right = "" } = problemExamples[id] ?? {};
    const parsed = parsePolicy([{ file: "policy.yaml", text: wrong }]);
    const ids = parsed.kind === "problems" ? parsed.problems.map((problem) => problem.id) : [];
    expect([...new Set(ids)]).toEqual([id]);
    const mended = parsePolicy([{ file: "policy.yaml", text: right }]);
    expect(mended.kind === "problems" ? mended.problems : []).toEqual([]);
  });
});
