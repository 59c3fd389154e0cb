/**
 * Lets Node itself import the TypeScript of this repository: `node --import` this file. Vitest's
 * own runner reads every name of another module through a getter, and translates in one process.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { register } from "node:module";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, threadId } from "node:worker_threads";

if (isMainThread) register(import.meta.url);

const root = new URL("../../", import.meta.url).href;
const cache = fileURLToPath(new URL("node_modules/.cache/native-modules/", root));

/** What this file does with a text is part of what the text becomes. */
const own = readFileSync(new URL(import.meta.url), "utf8");

/** @type {Map<string, string | undefined>} by what a module is asked for as: its file's URL */
const files = new Map();

/** @type {import("node:module").ResolveHook} */
export function resolve(specifier, context, next) {
  if (!/^(\.|file:)/.test(specifier)) return next(specifier, context);
  const { href } = new URL(specifier, context.parentURL);
  const [plain = "", query] = href.split("?");
  if (!isOurs(plain)) return next(specifier, context);
  if (!files.has(plain)) files.set(plain, typeScriptOf(plain));
  const file = files.get(plain);
  if (file === undefined) return next(specifier, context);
  const url = query === undefined ? file : `${file}?${query}`;
  return { url, format: "module", shortCircuit: true };
}

/** @type {import("node:module").LoadHook} */
export async function load(url, context, next) {
  const [plain = ""] = url.split("?");
  if (!isOurs(plain) || !/\.tsx?$/.test(plain)) return next(url, context);
  const path = fileURLToPath(plain);
  const text = readFileSync(path, "utf8");
  const mark = `\n//# ${createHash("sha1").update(own).update(text).digest("hex")}\n`;
  const cached = `${cache}${plain.slice(root.length)}.js`;
  const known = existsSync(cached) ? readFileSync(cached, "utf8") : "";
  if (known.endsWith(mark)) return { source: known, format: "module", shortCircuit: true };
  const source = `${await translate(path, text)}${mark}`;
  mkdirSync(dirname(cached), { recursive: true });
  // Other processes read it meanwhile.
  const begun = `${cached}.${process.pid}-${threadId}`;
  writeFileSync(begun, source);
  renameSync(begun, cached);
  return { source, format: "module", shortCircuit: true };
}

/** @param {string} url */
function isOurs(url) {
  return url.startsWith(root) && !url.includes("/node_modules/");
}

/**
 * The TypeScript that a module is written in; undefined where it is written in JavaScript.
 * @param {string} url
 */
function typeScriptOf(url) {
  if (/\.tsx?$/.test(url)) return url;
  const written = url.replace(/\.js(x?)$/, ".ts$1");
  return written !== url && existsSync(fileURLToPath(written)) ? written : undefined;
}

/**
 * @param {string} path
 * @param {string} text
 */
async function translate(path, text) {
  const { transform } = await import("esbuild");
  const { code } = await transform(text, {
    loader: path.endsWith("x") ? "tsx" : "ts",
    jsx: "automatic",
    jsxImportSource: "preact",
    sourcefile: basename(path),
    sourcemap: "inline",
    sourcesContent: false,
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  return code;
}
