import { isBuiltin } from "node:module";
import { posix } from "node:path";

/** Some dozens of patterns, each of them asked for thousands of times. */
const expressions = new Map<string, RegExp>();

/**
 * True when a path is what a pattern says: `*` is any part of one segment, `**` any rest, and
 * `{a,b}` one of several words.
 */
export function matches(pattern: string, path: string): boolean {
  const expression = expressions.get(pattern) ?? expressionOf(pattern);
  expressions.set(pattern, expression);
  return expression.test(path);
}

function expressionOf(pattern: string): RegExp {
  const expression = pattern
    .replace(/[.+()[\]^$|\\]/g, "\\$&")
    .replace(/\{([^}]*)\}/g, (_, words: string) => `(?:${words.replaceAll(",", "|")})`)
    .replace(/\*\*|\*/g, (stars) => (stars === "**" ? ".*" : "[^/]*"));
  return new RegExp(`^${expression}$`);
}

/** True when one of the patterns says this path. */
export function matchesAny(patterns: readonly string[], path: string): boolean {
  return patterns.some((pattern) => matches(pattern, path));
}

/** What an import reaches. */
export interface ImportTarget {
  readonly kind: "file" | "builtin" | "package";
  /** `src/core/limits/gcra.ts`, `node:fs` or `npm:ioredis`. */
  readonly path: string;
}

/**
 * What an import of a file reaches: the path of the source (`./a.js` is a.ts, unless it is
 * generated), the built-in, or the package without what follows its name.
 */
export function importTarget(from: string, specifier: string): ImportTarget {
  if (specifier.startsWith(".")) {
    return { kind: "file", path: sourcePath(posix.join(posix.dirname(from), specifier)) };
  }
  if (isBuiltin(specifier)) {
    const path = specifier.startsWith("node:") ? specifier : `node:${specifier}`;
    return { kind: "builtin", path };
  }
  const [first = "", second = ""] = specifier.split("/");
  const name = first.startsWith("@") ? `${first}/${second}` : first;
  return { kind: "package", path: `npm:${name}` };
}

/** The source of a path as an import or a script writes it; `.jsx` stands for `.tsx`. */
export function sourcePath(path: string): string {
  const inSource = path.replace(/^dist\//, "src/");
  return inSource.startsWith("src/gen/") ? inSource : inSource.replace(/\.js(x?)$/, ".ts$1");
}
