/** One entry of a descriptor. */
export interface ShownEntry {
  readonly key: string;
  readonly value: string;
}

/** A descriptor as the command line writes it: `plan=free,user=ann`. */
export function writeEntries(entries: readonly ShownEntry[]): string {
  return entries
    .map(({ key, value }) => {
      const name = key.replaceAll(/[,=\\]/g, "\\$&");
      return value === "" ? name : `${name}=${value.replaceAll(/[,\\]/g, "\\$&")}`;
    })
    .join(",");
}

/** Reads what `writeEntries` writes; undefined where an entry has no key, or for no text. */
export function readEntries(text: string): readonly ShownEntry[] | undefined {
  const entries: ShownEntry[] = [];
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

/** Characters that a reader cannot see, or that turn the text around them. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/** What a caller sent, as text that shows all of itself: what cannot be seen stands as its code. */
export function showText(text: string): string {
  return text.replaceAll(unseen, (found) => {
    return `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** Text for a place of limited width; the whole of it belongs into a title. */
export function clipText(text: string, charactersMax: number): string {
  const characters = [...text.slice(0, charactersMax * 2 + 2)];
  if (characters.length <= charactersMax) return text;
  return `${characters.slice(0, charactersMax - 1).join("")}…`;
}
