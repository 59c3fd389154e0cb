import { matches, matchesAny } from "./paths.js";
import { emptyWords, libraryEntries, retiredWords, storeNameHomes } from "./rules.js";
import type { Source, Violation } from "./source.js";

/** Retired words in src; each with the field's own. */
export function checkRetiredWords({ path, text: whole, lines }: Source): Violation[] {
  if (!path.startsWith("src/")) return [];
  const met = retiredWords.filter(({ word }) => word.test(whole));
  return lines.flatMap((text, i) =>
    met.flatMap(({ word, instead }) => {
      const [found] = word.exec(text) ?? [];
      if (found === undefined) return [];
      return [{ path, line: i + 1, message: `"${found}" is retired; say ${instead}` }];
    }),
  );
}

/** The product behind the store's interfaces, named where any store may stand. */
export function checkStoreNames({ path, lines }: Source): Violation[] {
  if (!path.startsWith("src/")) return [];
  if (storeNameHomes.some((home) => matches(home.path, path))) return [];
  return lines.flatMap((text, i) => {
    if (!/redis/i.test(text)) return [];
    const message = "knows the word redis; ask the store for what differs, or say store";
    return [{ path, line: i + 1, message }];
  });
}

/** Exports of src without a docstring right before them. Overloads share the first one's. */
export function checkDocstrings({ path, text, comments, exports }: Source): Violation[] {
  if (!path.startsWith("src/")) return [];
  const documented = new Set<string>();
  return exports.flatMap(({ name, line, start }) => {
    const comment = comments.findLast(({ end }) => end <= start);
    const isDocumented =
      comment?.kind === "Block" &&
      /^\*.*\w/s.test(comment.text) &&
      text.slice(comment.end, start).trim() === "";
    if (isDocumented) documented.add(name);
    if (documented.has(name)) return [];
    return [{ path, line, message: `${name} has no docstring; say in a sentence what it is` }];
  });
}

/** Names that several files of src export: one name means one thing in the whole program. */
export function checkOneMeaning(sources: readonly Source[]): Violation[] {
  const homes = new Map<string, string>();
  return sources.flatMap(({ path, exports }) => {
    if (!path.startsWith("src/") || path.includes(".d.")) return [];
    // Each of these is imported by itself: all interceptors may have the same name.
    if (matchesAny(libraryEntries, path)) return [];
    return exports.flatMap(({ name, line }) => {
      const home = homes.get(name) ?? path;
      homes.set(name, home);
      // Other programs know the library's by this name.
      if (home === path || name === "Admission") return [];
      return [
        { path, line, message: `${name} is exported by ${home} as well; rename one of them` },
      ];
    });
  });
}

/** Names that say nothing, and files that are not in kebab-case. */
export function checkNames({ path, exports }: Source): Violation[] {
  const found: Violation[] = [];
  const report = (line: number, message: string): void => void found.push({ path, line, message });
  for (const segment of path.split("/")) {
    if (!/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9-]+)*$/.test(segment)) {
      report(1, `${segment} is not in kebab-case`);
    }
    const empty = emptyWord(segment.replace(/\..*/, "").split("-"));
    if (empty !== undefined) report(1, `${segment}: "${empty}" says nothing; name what it does`);
  }
  for (const { name, line } of exports) {
    const empty = emptyWord(name.split(/(?=[A-Z])/));
    if (empty !== undefined) report(line, `${name}: "${empty}" says nothing; name what it does`);
    // IPv4 is a word of its own.
    if (/^(?:My[A-Z]|I(?!Pv)[A-Z][a-z])/.test(name)) report(line, `${name}: drop the prefix`);
  }
  return found;
}

function emptyWord(words: readonly string[]): string | undefined {
  return words.find((word) => emptyWords.includes(word.toLowerCase().replace(/s$/, "")));
}
