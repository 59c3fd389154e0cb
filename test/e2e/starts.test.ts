import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { HeadgateProcess } from "../support/headgate-process.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const hook = fileURLToPath(new URL("../support/loaded-files-program.mjs", import.meta.url));

const policy = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000}
`;

/** What the console and the command line ask first, as Connect takes it. */
const adminCalls = [
  "LimitService/ListRules",
  "LimitService/TopKeys",
  "PolicyService/GetPolicy",
  "FleetService/ListServices",
  "FleetService/GetHistory",
  "FleetService/GetFindings",
];

/** The texts of all files that are loaded with some of the built program. */
function loadedTexts(...entries: readonly string[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const open = entries.map((entry) => join("dist", entry));
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (texts.has(path)) continue;
    const text = readFileSync(path, "utf8");
    texts.set(path, text);
    for (const [, from = ""] of text.matchAll(/(?:from|import)\s*"(\.[^"]+)"/g)) {
      open.push(join(dirname(path), from));
    }
  }
  return texts;
}

/** The file of a module that is loaded when it is needed, by who asks for it. */
function lazyFile(name: string, importers: ReadonlyMap<string, string>): string {
  for (const [path, text] of importers) {
    const [, from] = new RegExp(`import\\(\\s*"([^"]*/${name}[^"/]*\\.js)"`).exec(text) ?? [];
    if (from !== undefined) return join(dirname(path), from).slice("dist/".length);
  }
  throw new Error(`nothing loads ${name}`);
}

const main = loadedTexts("cli/main.js");
const program = lazyFile("program", main);
const commands = loadedTexts("cli/main.js", program);
const serve = lazyFile("serve", commands);
const service = lazyFile("service-process", loadedTexts(serve));

describe("a start", () => {
  it.each([
    ["version", [], 5],
    ["check", [lazyFile("check", commands)], 12],
    ["explain", [lazyFile("explain", commands)], 16],
    ["serve", [serve, service, "app/base/logger.js"], 16],
  ])("of %s reads few files", (_name, files, countMax) => {
    const texts = loadedTexts("cli/main.js", program, ...files);
    expect([...texts.keys()].length).toBeLessThanOrEqual(countMax);
  });

  it("of the service reads no library that only some need, and no descriptor of a message", () => {
    const text = [...loadedTexts(serve, service, "app/base/logger.js").values()].join("\n");
    for (const mark of [
      "fileDesc",
      "resolveFlowCollection",
      "ioredis",
      "prettifyLevel",
      "JWSSignatureVerificationFailed",
      "BatchSpanProcessor",
    ]) {
      expect(text.includes(mark), mark).toBe(false);
    }
  });

  it("of the thread that parses policies reads nothing of the service", () => {
    const texts = loadedTexts("app/policy/policy-worker.js");
    expect(texts.size).toBeLessThanOrEqual(6);
    const text = [...texts.values()].join("\n");
    for (const mark of ["fileDesc", "prom-client", "commander/lib"]) {
      expect(text.includes(mark), mark).toBe(false);
    }
  });
});

describe("a service that has just started", () => {
  it("loads nothing more when it is called for the first time", async () => {
    const log = join(stage.folder, "loaded.txt");
    const env = { NODE_OPTIONS: `--import=${hook}`, LOADED_FILES: log };
    const headgate = await HeadgateProcess.start(stage, { policy, env });
    const loaded = async () => new Set((await readFile(log, "utf8")).split("\n"));
    const importers = loadedTexts(serve, service);
    const lazy = ["admin-requests", "json", "policy-changes"].map((name) =>
      lazyFile(name, importers),
    );
    const ahead = [...loadedTexts(...lazy).keys()].map((path) => basename(path));
    await waitFor("what calls need is loaded", async () => {
      const files = await loaded();
      return ahead.every((file) => files.has(file));
    });
    const before = await loaded();

    const caller = new RlsClient(headgate.grpcPort);
    stage.atEnd(() => caller.close());
    await caller.ask({ descriptors: [["user=caller-73"]] });
    const descriptors = [{ entries: [{ key: "user", value: "caller-73" }] }];
    expect((await headgate.postJson({ domain: "edge", descriptors })).status).toBe(200);
    for (const path of ["/metrics", "/healthcheck"]) {
      expect((await headgate.get(path)).status, path).toBe(200);
    }
    for (const method of adminCalls) {
      const url = `http://127.0.0.1:${headgate.portOf("admin")}/headgate.admin.v1.${method}`;
      const headers = { "content-type": "application/json" };
      const answer = await fetch(url, { method: "POST", headers, body: "{}" });
      expect(answer.status, method).toBe(200);
    }
    expect(await loaded()).toEqual(before);
  });
});
