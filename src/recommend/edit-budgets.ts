import { editText, type TextEdit } from "../policy/edit/edit-text.js";
import { findBudget, findSpec } from "../policy/edit/limit-places.js";
import type { PolicyText } from "../policy/parse.js";
import type { BudgetProposal } from "./budget-proposal.js";

/** Texts of a policy after an edit, or a sentence that says why they cannot be edited. */
type EditedBudgets =
  | { readonly kind: "edited"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "problem"; readonly message: string };

/** Writes amounts into the policy's text, each with a comment about its origin. */
export function editBudgets(
  sources: readonly PolicyText[],
  proposals: readonly BudgetProposal[],
): EditedBudgets {
  let edited: EditedBudgets = { kind: "edited", sources };
  for (const proposal of proposals) {
    const before: readonly PolicyText[] = edited.sources;
    const found = placeOf(before, proposal);
    if (found === undefined) continue;
    const changed = editText(found.source.text, found.edit);
    if (changed.kind === "problem") return changed;
    edited = {
      kind: "edited",
      sources: before.map((one) => {
        return one === found.source ? { ...one, text: changed.text } : one;
      }),
    };
  }
  return edited;
}

/** Returns where and how a proposal is written. */
function placeOf(
  sources: readonly PolicyText[],
  { budget, amount, line, why }: BudgetProposal,
): { readonly source: PolicyText; readonly edit: TextEdit } | undefined {
  if (line === undefined) {
    const found = findBudget(sources, budget);
    const entries = [{ name: "amount", value: amount, comment: why }];
    return found && { source: found.source, edit: { kind: "set", path: found.path, entries } };
  }
  const spec = findSpec(sources);
  if (spec === undefined) return undefined;
  const { source, path, value } = spec;
  const item = `${line} # ${why}`;
  // A flow sequence (in brackets) takes no comment.
  if (!Array.isArray(value["budgets"])) {
    const lines = ["budgets:", `  ${item}`];
    return { source, edit: { kind: "append", path, lines } };
  }
  return { source, edit: { kind: "append", path: [...path, "budgets"], lines: [item] } };
}
