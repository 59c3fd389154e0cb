/**
 * Joins the chunks of a build by what is loaded together. esbuild makes a chunk for each set of
 * entry points that share modules, so a start of the service would read 87 files, and to find, read
 * and link one takes longer than to scan 50 kB of code that is not needed.
 */
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import { build } from "esbuild";
import { takeBuiltins } from "./load-later.mjs";

/** CPU of loading one file more, in milliseconds, measured with Node 20. */
const fileMs = 0.5;

/**
 * CPU of loading modules of Node that most commands do without, in milliseconds. What they load
 * themselves is in it.
 */
const builtinMs = { http: 3, http2: 7, https: 5, tls: 4.5 };

/** CPU of evaluating a byte of generated descriptors of messages, in milliseconds. */
const descriptorByteMs = 5e-4;

/** CPU of loading a byte more of code that is not called, in milliseconds. */
const byteMs = 2e-5;

/**
 * @typedef {object} Start what one process loads
 * @property {string[]} entries the outputs that it begins with
 * @property {number} weight how much its CPU counts, beside 1
 */

/**
 * @typedef {object} Group chunks that become one file
 * @property {string[]} chunks
 * @property {number} bytes
 * @property {Set<Start>} loaders the starts that load it
 */

/**
 * Joins chunks while starts gain by it, and makes all outputs smaller. Entry points keep their
 * names and exports.
 *
 * @param {object} given
 * @param {string} given.root what the paths of the outputs are relative to
 * @param {string} given.dist the folder of the outputs, likewise
 * @param {import("esbuild").Metafile["outputs"]} given.outputs of a build with splitting, written
 * @param {Start[]} given.starts
 * @param {import("esbuild").BuildOptions} given.options of that build, as far as they apply
 */
export async function joinChunks({ root, dist, outputs, starts, options }) {
  const chunks = createGroups(outputs, starts);
  const groups = joinGroups(chunks, starts, outputs).filter(({ chunks }) => chunks.length > 1);
  const joined = new Set(groups.flatMap(({ chunks }) => chunks));
  const kept = Object.keys(outputs).filter((path) => path.endsWith(".js") && !joined.has(path));
  const folder = dirname(groups[0]?.chunks[0] ?? "");
  const nameOf = (group) => `joined-${groups.indexOf(group) + 1}`;
  const { outputFiles } = await build({
    ...options,
    absWorkingDir: root,
    entryPoints: [
      ...kept.map((path) => ({ in: join(root, path), out: withoutEnding(relative(dist, path)) })),
      ...groups.map((group) => ({
        in: `joined:${nameOf(group)}`,
        out: join(relative(dist, folder), nameOf(group)),
      })),
    ],
    outdir: dist,
    bundle: true,
    minifySyntax: true,
    minifyWhitespace: true,
    // Stack traces name lines.
    lineLimit: 100,
    allowOverwrite: true,
    plugins: [joiningPlugin({ root, outputs, groups, nameOf })],
    write: false,
  });
  for (const { path, text } of outputFiles) {
    writeFileSync(path, path.endsWith(".js") ? takeBuiltins(text) : text);
  }
  for (const path of joined) {
    for (const end of ["", ".map"]) rmSync(join(root, `${path}${end}`), { force: true });
  }
}

/** Each chunk by itself; those that no start loads stay as they are. @returns {Group[]} */
function createGroups(outputs, starts) {
  const loads = new Map(starts.map((start) => [start, closureOf(outputs, start.entries)]));
  return Object.keys(outputs)
    .filter((path) => path.endsWith(".js") && outputs[path].entryPoint === undefined)
    .map((path) => ({
      chunks: [path],
      bytes: outputs[path].bytes + evaluatedBytes(outputs[path]),
      loaders: new Set(starts.filter((start) => loads.get(start).has(path))),
    }))
    .filter(({ loaders }) => loaders.size > 0);
}

/** What an output costs beside its own code, as bytes of code. */
function evaluatedBytes({ imports, inputs }) {
  const builtins = imports.map(({ path }) => builtinMs[path.replace("node:", "")] ?? 0);
  const descriptors = Object.entries(inputs)
    .filter(([path]) => path.startsWith("src/gen/"))
    .map(([, { bytesInOutput }]) => bytesInOutput * descriptorByteMs);
  return [Math.max(0, ...builtins), ...descriptors].reduce((sum, ms) => sum + ms, 0) / byteMs;
}

/** Joins the two with the largest gain, again and again. @returns {Group[]} */
function joinGroups(groups, starts, outputs) {
  const next = nextGroups(groups, outputs);
  const needs = new Map(groups.map((group) => [group, neededBy(group, next)]));
  let best = { gain: 0 };
  for (const [index, one] of groups.entries()) {
    for (const other of groups.slice(index + 1)) {
      const gain = gainOf([one, other], starts, needs);
      if (gain <= best.gain || leadsAround(one, other, next)) continue;
      if (!leadsAround(other, one, next)) best = { gain, one, other };
    }
  }
  if (best.gain === 0) return groups;
  const { one, other } = best;
  const loaders = new Set([...one.loaders, ...other.loaders]);
  const whole = {
    chunks: [...one.chunks, ...other.chunks],
    bytes: one.bytes + other.bytes,
    loaders,
  };
  const needed = new Set([...needs.get(one), ...needs.get(other)]);
  const others = groups
    .filter((group) => group !== one && group !== other)
    .map((group) => {
      if (!needed.has(group)) return group;
      return { ...group, loaders: new Set([...group.loaders, ...loaders]) };
    });
  return joinGroups([...others, whole], starts, outputs);
}

/** What the starts gain when two groups are one file, in milliseconds of CPU. */
function gainOf([one, other], starts, needs) {
  let gainMs = 0;
  for (const start of starts) {
    const hasOne = one.loaders.has(start);
    if (hasOne && other.loaders.has(start)) gainMs += start.weight * fileMs;
    else if (hasOne || other.loaders.has(start)) {
      // With the other come all that it needs.
      for (const group of needs.get(hasOne ? other : one)) {
        if (!group.loaders.has(start)) gainMs -= start.weight * byteMs * group.bytes;
      }
    }
  }
  return gainMs;
}

/** Answers the groups that a group imports. */
function nextGroups(groups, outputs) {
  const groupOf = groupsByChunk(groups);
  const next = new Map(
    groups.map((group) => {
      const paths = group.chunks.flatMap((path) => importsOf(outputs, path));
      const found = new Set(paths.map((path) => groupOf.get(path)));
      found.delete(undefined);
      found.delete(group);
      return [group, [...found]];
    }),
  );
  return (group) => next.get(group);
}

/** A group and all that is loaded with it. */
function neededBy(group, next) {
  const seen = new Set();
  const open = [group];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (seen.has(one)) continue;
    seen.add(one);
    open.push(...next(one));
  }
  return seen;
}

/** Whether a group leads to another over a third: joined, they would import it in a circle. */
function leadsAround(from, to, next) {
  const seen = new Set();
  const open = next(from).filter((group) => group !== to);
  for (let group = open.pop(); group !== undefined; group = open.pop()) {
    if (seen.has(group)) continue;
    seen.add(group);
    const after = next(group);
    if (after.includes(to)) return true;
    open.push(...after);
  }
  return false;
}

/**
 * Resolves imports of joined chunks to the files that they are in now.
 *
 * @returns {import("esbuild").Plugin}
 */
function joiningPlugin({ root, outputs, groups, nameOf }) {
  const groupOf = groupsByChunk(groups);
  const groupNamed = new Map(groups.map((group) => [`joined:${nameOf(group)}`, group]));
  // Two chunks of a group may export the same name.
  const numbers = new Map([...groupOf.keys()].map((path, index) => [path, index]));
  const names = (path, write) =>
    outputs[path].exports.map((name) => write(name, `${name}_${numbers.get(path)}`));
  return {
    name: "join",
    setup(bundler) {
      bundler.onResolve({ filter: /.*/ }, ({ path, kind, importer, namespace }) => {
        if (kind === "entry-point")
          return path.startsWith("joined:") ? { path, namespace: "group" } : undefined;
        const target = namespace === "group" ? path : resolve(dirname(importer), path);
        const output = relative(root, target);
        const group = groupOf.get(output);
        if (namespace === "outside" || group === undefined) return { path, external: true };
        const own =
          namespace === "group" ? groupNamed.get(importer) : groupOf.get(relative(root, importer));
        if (group === own) return { path: target };
        const file = `${posix.dirname(path)}/${nameOf(group)}.js`;
        return { path: `${output} ${file}`, namespace: "outside", pluginData: { output, file } };
      });
      bundler.onLoad({ filter: /.*/, namespace: "group" }, ({ path }) => ({
        contents: groupNamed
          .get(path)
          .chunks.map((chunk) => {
            const exported = names(chunk, (name, unique) => `${name} as ${unique}`);
            return `export { ${exported.join(", ")} } from ${JSON.stringify(join(root, chunk))};`;
          })
          .join("\n"),
        resolveDir: root,
      }));
      bundler.onLoad({ filter: /.*/, namespace: "outside" }, ({ pluginData: { output, file } }) => {
        const exported = names(output, (name, unique) => `${unique} as ${name}`);
        return { contents: `export { ${exported.join(", ")} } from ${JSON.stringify(file)};` };
      });
    },
  };
}

/** @returns {Map<string, Group>} */
function groupsByChunk(groups) {
  return new Map(groups.flatMap((group) => group.chunks.map((path) => [path, group])));
}

/** All that is loaded with some outputs. @returns {Set<string>} */
function closureOf(outputs, entries) {
  const seen = new Set();
  const open = [...entries];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    open.push(...importsOf(outputs, path));
  }
  return seen;
}

/** What an output imports of the others; what it imports when it is needed does not count. */
function importsOf(outputs, path) {
  return outputs[path].imports
    .filter(({ external, kind }) => external !== true && kind === "import-statement")
    .map((imported) => imported.path);
}

function withoutEnding(path) {
  return path.slice(0, -".js".length);
}
