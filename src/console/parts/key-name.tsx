import { clipText, type ShownEntry, showText, writeEntries } from "../data/entries.js";

const charactersMax = 60;

/** A descriptor as text, cut where it is long. Its direction is its own, not its surroundings'. */
export function KeyName({ entries }: { readonly entries: readonly ShownEntry[] }) {
  const text = showText(writeEntries(entries));
  const short = clipText(text, charactersMax);
  return (
    <bdi class="key-name" title={short === text ? undefined : clipText(text, 2_000)}>
      {short}
    </bdi>
  );
}
