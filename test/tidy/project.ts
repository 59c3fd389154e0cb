import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Manifest } from "./reach.js";
import { parseSource, type Source } from "./source.js";

/** The project as it lies on the disk. */
export interface Project {
  /** The code of src (without src/gen), test and tools, also what is not committed yet. */
  readonly sources: readonly Source[];
  /** The text files that git tracks. */
  readonly texts: readonly { readonly path: string; readonly text: string }[];
  /** The paths that git tracks. */
  readonly tracked: readonly string[];
  readonly manifest: Manifest;
}

/** The files whose words say which tools are in use. */
const configurationFiles = [
  "biome.json",
  "proto/buf.gen.yaml",
  "tools/bootstrap.mjs",
  "tools/prepare.mjs",
  "tsconfig.json",
  "vitest.config.ts",
];

/** Reads the project below a folder, which must be a git work tree. */
export function readProject(root: string): Project {
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
    .split("\0")
    .filter((path) => path !== "" && existsSync(join(root, path)));
  const texts = tracked
    .map((path) => ({ path, text: read(path) }))
    .filter(({ text }) => !text.includes("\0"));
  const sources = ["src", "test", "tools"]
    .flatMap((folder) => filesUnder(root, folder))
    .filter((path) => /\.(?:[cm]?[jt]s|tsx)$/.test(path) && !path.startsWith("src/gen/"))
    .map((path) => parseSource(path, read(path)));
  return { sources, texts, tracked, manifest: readManifest(root) };
}

function filesUnder(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return filesUnder(root, path);
      return entry.isFile() ? [path] : [];
    })
    .sort();
}

interface PackageJson {
  readonly scripts?: Readonly<Record<string, string>>;
  readonly bin?: string | Readonly<Record<string, string>>;
  /** What src may import: it is built into the program, so that an installation needs none. */
  readonly bundled?: readonly string[];
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function readManifest(root: string): Manifest {
  const readPackage = (folder: string): PackageJson =>
    JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as PackageJson;
  const manifest = readPackage(".");
  const { scripts = {}, bin = {}, bundled = [], devDependencies = {} } = manifest;
  const configuration = configurationFiles
    .filter((path) => existsSync(join(root, path)))
    .map((path) => readFileSync(join(root, path), "utf8"))
    .join("\n");
  return {
    bundled,
    peers: Object.keys(manifest.peerDependencies ?? {}),
    devDependencies: Object.keys(devDependencies).filter((name) => !bundled.includes(name)),
    commands: [...Object.values(scripts), ...Object.values(bin)].join("\n"),
    configuration,
    programsOf: (name) => {
      const programs = readPackage(join("node_modules", name)).bin ?? {};
      return typeof programs === "string" ? [name.replace(/.*\//, "")] : Object.keys(programs);
    },
  };
}
