import type { AskablePart } from "../policy/services/descriptor-parts.js";

/**
 * Reads the parts of a descriptor, separated by commas: `remote_address`, `key=@header` or
 * `key=value`. Returns a sentence if a part has another form.
 *
 * Example: `plan=free,user=@x-user`.
 */
export function parseParts(text: string): readonly AskablePart[] | string {
  const parts: AskablePart[] = [];
  for (const word of text.split(",")) {
    const mark = word.indexOf("=");
    const [key, value] = [word.slice(0, mark), word.slice(mark + 1)];
    if (word === "remote_address") parts.push({ kind: "remoteAddress", key: word });
    else if (mark < 1 || value === "" || value === "@") {
      return "write remote_address, key=@header or key=value, separated by commas";
    } else if (!value.startsWith("@")) parts.push({ kind: "fixed", key, value });
    else parts.push({ kind: "header", header: value.slice(1).toLowerCase(), key });
  }
  return parts;
}
