import type { DifferenceRow } from "../../../src/policy/migration/difference-row.js";
import { differenceRows } from "../../../src/policy/migration/differences.js";
import { paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
Each difference is deliberate, and covered by a test whose name starts with its id. \`headgate check
--ratelimit DIR\` lists those that affect your configuration. If there is a switch, it restores the
behavior of envoyproxy/ratelimit.`;

const kinds = [
  ["different", "Check these before you switch", "You may rely on the other behavior."],
  ["stricter", "Stricter", "Headgate may reject what the original accepts, and says why."],
  ["better", "Improvements", "These have no drawbacks."],
] as const;

/** Where Headgate behaves otherwise than envoyproxy/ratelimit. */
export function differencesPage(): ReferencePage {
  const all = Object.entries<DifferenceRow>(differenceRows);
  const parts = kinds.flatMap(([kind, heading, meaning]) => {
    const rows = all
      .filter(([, row]) => row.kind === kind)
      .map(([id, { reference, headgate, choice = "" }]) => [
        `<a id="${id}"></a>${id}`,
        reference,
        headgate,
        choice,
      ]);
    const header = ["id", "envoyproxy/ratelimit", "Headgate", "switch"];
    return [`## ${heading}`, `\`${kind}\`: ${meaning}`, table(header, rows)];
  });
  return {
    path: "differences.md",
    title: "Differences from envoyproxy/ratelimit",
    purpose: "This page lists what changes for a configuration of envoyproxy/ratelimit.",
    body: paragraphs(intro, ...parts),
  };
}
