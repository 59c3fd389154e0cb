import { ignoredOptionRows } from "../../../src/app/options/ignored-options.js";
import { type OptionRow, optionFlag } from "../../../src/app/options/option.js";
import { type OptionName, optionRow, optionSections } from "../../../src/app/options/options.js";
import { formatDuration } from "../../../src/policy/text/duration.js";
import { code, paragraphs, type ReferencePage, table } from "./markdown.js";

const intro = `\
Every setting is an environment variable, and most are also flags of \`headgate serve\`. Flags take
precedence over the environment, which takes precedence over the defaults. Names without
\`HEADGATE_\` come from envoyproxy/ratelimit and have the same meaning as there. An unknown
\`HEADGATE_\` name is an error.

- A secret has no flag. It may also come from a file, which the name with \`_FILE\` names:
  \`REDIS_AUTH_FILE\`.
- A switch takes \`true\`, \`t\`, \`1\`, \`false\`, \`f\` and \`0\`, in any case. Its flag may
  stand alone.
- A time is written like \`250ms\`, \`10s\` or \`1h30m\`.
- Where no default is named, nothing is set.`;

/** What a setting takes, in the words that a wrong value is refused with. */
function takes({ parse, valueName }: OptionRow<unknown>): string {
  // No setting takes a text with this character, unless it takes any.
  const parsed = parse("\0");
  if (parsed.kind === "value") return valueName.toLowerCase();
  return parsed.message
    .replace(/^must be (?:an? )?/, "")
    .replace(/^time like .*?, (at .*)/, (_, bounds: string) => `time, ${bounds}`)
    .replaceAll(/\b(\d+)ms\b(?!,)/g, (_, digits: string) => code(formatDuration(Number(digits))))
    .replaceAll(/\b\d{5,}\b/g, grouped)
    .replace(/^true or false$/, "`true`, `false`")
    .replace(/^one of (.*)$/, (_, words: string) => words.split(", ").map(code).join(", "));
}

function takesCell(row: OptionRow<unknown>): string {
  const { defaultText = "" } = row;
  return defaultText === "" ? takes(row) : `${takes(row)}; default ${code(defaultText)}`;
}

function grouped(digits: string): string {
  return Number(digits).toLocaleString("en-US");
}

function nameCell(row: OptionRow<unknown>): string {
  const { env, isSecret } = row;
  const names = isSecret ? [env, `${env}_FILE`] : [env];
  const flag = optionFlag(row);
  const flags = flag === undefined ? [] : [`--${flag}`];
  return `<a id="${env}"></a>${[...names, ...flags].map(code).join(", ")}`;
}

/** The settings of the process, by section. */
export function settingsPage(): ReferencePage {
  const rowOf = (name: OptionName): string[] => {
    const row = optionRow(name);
    return [nameCell(row), takesCell(row), row.docs];
  };
  const ignored = ignoredOptionRows.map(({ names, reason }) => [
    names.map(code).join(", "),
    reason,
  ]);
  return {
    path: "settings.md",
    title: "Settings",
    purpose: "This page lists the environment variables and flags of the service.",
    body: paragraphs(
      intro,
      ...[...optionSections].map(
        ([section, names]) =>
          `## ${section}\n\n${table(["environment, flag", "takes", "meaning"], names.map(rowOf))}`,
      ),
      "## Accepted without effect",
      "You can keep these settings of envoyproxy/ratelimit. Headgate logs once at startup which " +
        "of them are set.",
      table(["environment", "why it has no effect"], ignored),
    ),
  };
}
