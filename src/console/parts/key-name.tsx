import { formatEntries } from "../../core/limits/descriptor-text.js";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { clipText, showText } from "../data/shown-text.js";

const charactersMax = 60;

/** A descriptor as text, cut where it is long. Its direction is its own, not its surroundings'. */
export function KeyName({ entries }: { readonly entries: readonly DescriptorEntry[] }) {
  const text = showText(formatEntries(entries));
  const short = clipText(text, charactersMax);
  return (
    <bdi class="key-name" title={short === text ? undefined : clipText(text, 2_000)}>
      {short}
    </bdi>
  );
}
