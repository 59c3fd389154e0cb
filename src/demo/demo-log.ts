import type { LogEvent, Logger } from "../app/base/logger.js";
import type { Style } from "../app/base/style.js";

/**
 * The service's log as the demo shows it: what a person has caused or must know, as sentences. The
 * policy's first load is told by the banner.
 */
export function createDemoLogger({
  print,
  style,
}: {
  readonly print: (text: string) => void;
  readonly style: Style;
}): Logger {
  let loadCount = 0;
  return {
    debug: () => {},
    info: ({ event, ruleCount }: LogEvent) => {
      if (event === "policyLoaded") loadCount += 1;
      if (event !== "policyLoaded" || loadCount === 1) return;
      print(`\n  ${style.good("The edited policy is active:")} ${String(ruleCount)} rules.\n`);
    },
    warn: (_event, sentence) => print(`\n  ${sentence}\n`),
    error: (_event, sentence) => print(`\n  ${style.bad(indent(sentence))}\n`),
  };
}

function indent(text: string): string {
  return text.trimEnd().replaceAll("\n", "\n  ");
}
