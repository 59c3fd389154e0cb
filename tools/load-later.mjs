/**
 * Keeps out of every start what few runs use, where source code cannot: it would have to wait for
 * an `import()` in functions that answer at once.
 */

/**
 * Packages that are evaluated when one of these constructors is called first. To evaluate the
 * library of conditions, which most policies do without, takes 6 ms of CPU.
 */
const laterConstructors = { "@marcbachmann/cel-js": ["Environment"] };

/**
 * Modules of Node that a package asks for and never uses here, by package: it starts no program,
 * and loading what does takes 4 ms of CPU.
 */
const unusedModules = { commander: ["node:child_process"] };

/** @type {import("esbuild").Plugin} */
export const loadLaterPlugin = {
  name: "load-later",
  setup(bundler) {
    for (const [name, constructors] of Object.entries(laterConstructors)) {
      bundler.onResolve({ filter: new RegExp(`^${name}$`) }, ({ path, namespace }) =>
        namespace === "later" ? undefined : { path, namespace: "later" },
      );
      bundler.onLoad({ filter: new RegExp(`^${name}$`), namespace: "later" }, ({ path }) => ({
        contents: constructors
          .map((one) => {
            const made = `new (require(${JSON.stringify(path)}).${one})(...given)`;
            return `export function ${one}(...given) { return ${made}; }`;
          })
          .join("\n"),
        resolveDir: bundler.initialOptions.absWorkingDir,
      }));
    }
    for (const [name, modules] of Object.entries(unusedModules)) {
      bundler.onResolve(
        { filter: new RegExp(`^(?:${modules.join("|")})$`) },
        ({ path, importer }) =>
          importer.includes(`/node_modules/${name}/`) ? { path, namespace: "unused" } : undefined,
      );
    }
    bundler.onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "" }));
  },
};

/**
 * Takes what a file imports of Node's own modules without `import`, which reads all that a module
 * exports, and so makes what is made when it is read: a copy of all root certificates of TLS, the
 * Web Crypto API, and from Node 22 on the whole library of `fetch` for `node:http`.
 *
 * @param {string} text a file of the bundle
 */
export function takeBuiltins(text) {
  const imports = /\bimport\s*(?:\{([^}]*)\}|\*\s*as ([\w$]+))\s*from\s*"(node:[^"]+)"/g;
  return text.replace(imports, (_all, names = "", whole, module) => {
    const bound = whole ?? `{${names.replaceAll(" as ", ":")}}`;
    return `const ${bound}=process.getBuiltinModule("${module}")`;
  });
}
