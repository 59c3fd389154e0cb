import type { DescriptorEntry } from "./key.js";

/** Formats a descriptor as people write it: `plan=free,user=ann`, the outermost entry first. */
export function formatEntries(entries: readonly DescriptorEntry[]): string {
  return entries
    .map(({ key, value }) => {
      const name = key.replaceAll(/[,=\\]/g, "\\$&");
      return value === "" ? name : `${name}=${value.replaceAll(/[,\\]/g, "\\$&")}`;
    })
    .join(",");
}

/**
 * Reads what `formatEntries` writes. Returns undefined if an entry has no key or the text is empty.
 * A key without `=` has an empty value.
 */
export function readEntries(text: string): readonly DescriptorEntry[] | undefined {
  const entries: DescriptorEntry[] = [];
  let key: string | undefined;
  let word = "";
  const end = (): void => {
    entries.push(key === undefined ? { key: word, value: "" } : { key, value: word });
    key = undefined;
    word = "";
  };
  for (let i = 0; i < text.length; i += 1) {
    const character = text.charAt(i);
    if (character === "\\" && /[,=\\]/.test(text.charAt(i + 1))) {
      i += 1;
      word += text.charAt(i);
    } else if (character === ",") end();
    else if (character === "=" && key === undefined) {
      key = word;
      word = "";
    } else word += character;
  }
  end();
  return entries.some((entry) => entry.key === "") ? undefined : entries;
}
