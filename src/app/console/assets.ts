import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { extname, join, relative, sep } from "node:path";
import { httpStatuses } from "../../core/base/http-status.js";
import type { ConsoleAnswer } from "./answers.js";

/** The maximum number of console files, and their maximum total size in bytes. */
const assetsMax = 200;
const assetBytesMax = 8_388_608;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/** Content encodings, the most compact first, with their file extensions. */
const encodings = [
  { name: "br", ending: ".br" },
  { name: "gzip", ending: ".gz" },
] as const;

interface Asset {
  readonly type: string;
  readonly etag: string;
  readonly isHashed: boolean;
  /** By encoding. Most files exist only in compressed form. */
  readonly bodies: ReadonlyMap<string, Buffer>;
}

/** The console's files by path, all in memory: serving a request opens no file. */
export class ConsoleAssets {
  readonly #assets: ReadonlyMap<string, Asset>;

  constructor(assets: ReadonlyMap<string, Asset>) {
    this.#assets = assets;
  }

  /** Reads a folder; undefined if it has no `index.html`, or exceeds the bounds. */
  static async read(folder: string): Promise<ConsoleAssets | undefined> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile() && !entry.name.endsWith(".map"))
      .map((entry) => join(entry.parentPath, entry.name));
    if (paths.length > assetsMax) return undefined;
    const files = new Map<string, Buffer>();
    let leftBytes = assetBytesMax;
    for (const path of paths) {
      const bytes = await readFile(path);
      leftBytes -= bytes.length;
      if (leftBytes < 0) return undefined;
      files.set(`/${relative(folder, path).split(sep).join("/")}`, bytes);
    }
    const names = new Set([...files.keys()].map((path) => path.replace(/\.(?:br|gz)$/, "")));
    const assets = new Map([...names].flatMap((path) => assetOf(path, files)));
    const index = assets.get("/index.html");
    if (index === undefined) return undefined;
    return new ConsoleAssets(assets.set("/", index));
  }

  /** The response for a path; undefined if there is no such file. */
  answer(path: string, headers: IncomingHttpHeaders): ConsoleAnswer | undefined {
    const asset = this.#assets.get(path);
    if (asset === undefined) return undefined;
    const { type, etag, isHashed, bodies } = asset;
    const common = {
      etag,
      vary: "accept-encoding",
      "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
    };
    if (headers["if-none-match"] === etag) {
      return { status: httpStatuses.notModified, headers: common, body: "" };
    }
    const accepted = acceptedOf(headers);
    const present = encodings.filter(({ name }) => bodies.has(name));
    // A client that names no encoding may receive any. Source: RFC 9110, 12.5.3.
    const fallback = bodies.has("identity") ? undefined : present.at(-1);
    const found = present.find(({ name }) => accepted.has(name)) ?? fallback;
    const body = bodies.get(found?.name ?? "identity") ?? Buffer.alloc(0);
    const encoding = found === undefined ? {} : { "content-encoding": found.name };
    return {
      status: httpStatuses.ok,
      headers: { ...common, ...encoding, "content-type": type },
      body,
    };
  }
}

function assetOf(path: string, files: ReadonlyMap<string, Buffer>): readonly [string, Asset][] {
  const type = types[extname(path)];
  const bodies = new Map<string, Buffer>();
  for (const { name, ending } of [{ name: "identity", ending: "" }, ...encodings]) {
    const body = files.get(`${path}${ending}`);
    if (body !== undefined) bodies.set(name, body);
  }
  const [first] = bodies.values();
  if (first === undefined || type === undefined) return [];
  const etag = `"${createHash("sha256").update(first).digest("base64url").slice(0, 22)}"`;
  return [[path, { type, etag, isHashed: path.startsWith("/assets/"), bodies }]];
}

/** The encodings that a browser accepts, without those of weight 0. */
function acceptedOf({ "accept-encoding": text = "" }: IncomingHttpHeaders): ReadonlySet<string> {
  const named = String(text)
    .split(",")
    .map((one) => one.split(";").map((part) => part.trim()));
  const taken = named.filter(([, weight = "q=1"]) => !/^q=0(?:\.0*)?$/.test(weight));
  return new Set(taken.map(([name = ""]) => name.toLowerCase()));
}
