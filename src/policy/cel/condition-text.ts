import { type FieldType, readBy, text } from "../text/form.js";
import type { TextRule } from "../text/text-rules.js";
import { ConditionCompiler, conditionCharsMax } from "./cel.js";

/** A condition may span several lines. Its compiler checks its length. */
const rule: TextRule = {
  charsMax: 16 * conditionCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `a condition in CEL of at most ${conditionCharsMax} characters`,
};

/** Holds only the CEL environment, so all policies may share it. */
const compiler = new ConditionCompiler();

function checked(compile: "compile" | "expression"): FieldType<string> {
  return readBy(text(rule), (reader, place) => {
    const written = reader.readText(place, rule);
    if (written === undefined) return undefined;
    const compiled = compiler[compile](written);
    if (compiled.kind !== "wrong") return written;
    const { start, end, ...finding } = compiled.mistake;
    return reader.reportPart(place.value ?? place.key, { start, end }, finding);
  });
}

/** A condition over the request that Headgate evaluates. */
export const condition = checked("compile");

/** A condition that Envoy's matchers evaluate, which offer a little less. */
export const matcherCondition = checked("expression");
