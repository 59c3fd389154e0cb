import type { WorstMessage } from "./worst-messages.js";

/** What JSON makes most of, for what it takes. */
const units = ["[]", "{}", "[[]]", '{"a":[]}', '""', '"a"', "7", "null"];

/**
 * The worst JSON objects of that many bytes: lists of what takes more than its text, as members of
 * these names or of none that anybody reads; lists in each other; members with names of their own.
 *
 * @param rest members that stand before, with a comma behind them
 */
export function worstJson(
  byteCount: number,
  names: readonly string[] = [],
  rest = "",
): readonly WorstMessage[] {
  const lists = [...names, "x"].flatMap((name) =>
    units.map((unit) => ({
      what: `${name}: [${unit},...]`,
      bytes: Buffer.from(`{${rest}"${name}":[${repeat(`${unit},`, byteCount)}${unit}]}`),
    })),
  );
  const half = Math.floor(byteCount / 2);
  const deep = `{${rest}"x":${"[".repeat(half)}${"]".repeat(half)}}`;
  const members = Array.from({ length: Math.ceil(byteCount / 11) }, (_, i) => {
    return `"${i.toString(36)}":[]`;
  });
  const named = `{${rest}"x":{${members.join(",")}}}`;
  return [
    ...lists,
    { what: "lists in each other", bytes: Buffer.from(deep) },
    { what: "lines", bytes: Buffer.from(`{${rest}"x":"${repeat("\\n", byteCount)}"}`) },
    { what: "members with names of their own", bytes: Buffer.from(named) },
  ];
}

function repeat(unit: string, byteCount: number): string {
  return unit.repeat(Math.max(0, Math.floor(byteCount / unit.length) - 1));
}
