import type { DifferenceRow } from "../../../src/policy/migration/difference-row.js";
import { differenceRows } from "../../../src/policy/migration/differences.js";
import { paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
Each difference is deliberate, and shown by a test that begins with its id. \`headgate check
--ratelimit DIR\` names those that your configuration meets. The switch, where there is one,
brings the other behavior back.`;

const kinds = [
  [
    "different",
    "Look at these before you switch",
    "Somebody may have relied on the other behavior.",
  ],
  ["stricter", "What is refused", "What is taken there may be refused here, with the reason."],
  ["better", "What is better", "Nobody loses by these."],
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
    purpose: "Look up what changes for a configuration of envoyproxy/ratelimit.",
    body: paragraphs(intro, ...parts),
  };
}
