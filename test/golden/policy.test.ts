import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { metadataCharsMax } from "../../src/policy/limits/metadata.js";
import { type PolicyText, parsePolicy } from "../../src/policy/parse.js";
import { fileCharsMax } from "../../src/policy/policy-size.js";
import { formatProblems, problemRows } from "../../src/policy/problems/problem.js";
import { defaultProxies } from "../../src/policy/proxies/default-proxies.js";
import { aliasesMax, lexemesMax, nestingMax } from "../../src/policy/text/yaml-text.js";
import { templateCharsMax } from "../../src/policy/waiting-rooms/room-page.js";

/**
 * Each folder is a policy: its `*.yaml`, its `*.html` also of folders in it, and in `expected` the
 * rules or the problems they give. The files of a folder that begins with `merged-` may add to each
 * other's domains; one that begins with `regions-` is read by a service of as many regions.
 */
const root = fileURLToPath(new URL("./policy", import.meta.url));
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";

/** Ten levels of ten, and one alias of it all: ten thousand million parts. */
function aliasBomb(): string {
  const levels = Array.from({ length: 10 }, (_, i) => {
    return `a${i + 1}: &a${i + 1} [${Array.from({ length: 10 }, () => `*a${i}`).join(", ")}]\n`;
  });
  return `a0: &a0 x\n${levels.join("")}domain: *a10\n`;
}

/** Each a list around the one before, down to the deepest and beyond. */
function aliasChain(): string {
  const links = Array.from({ length: nestingMax }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]\n`);
  return `a0: &a0 x\n${links.join("")}`;
}

/** Policies that no editor would keep as they are, or that are too large to keep. */
const generatedCases: Readonly<Record<string, () => readonly PolicyText[]>> = {
  "generated-alias-bounds": () => [
    { file: "bomb.yaml", text: aliasBomb() },
    { file: "chain.yaml", text: aliasChain() },
    { file: "count.yaml", text: `domain: &a shop\nb: [${"*a, ".repeat(aliasesMax + 1)}]\n` },
  ],
  "generated-characters": () => [
    { file: "bell.yaml", text: "domain: shop\ndescriptors: \u0007[]\n" },
    { file: "latin1.yaml", text: "domain: gr\ufffd\ufffde\n" },
    { file: "old-mac.yaml", text: "domain: shop\rdescriptors: []\r" },
    { file: "pair.yaml", text: "domain: \ud83d\n" },
    { file: "two-marks.yaml", text: "\ufeff\ufeffdomain: shop\n" },
  ],
  "generated-columns": () => [
    { file: "bom.yaml", text: "\ufeffdomian: 5\ndomain: shop\n" },
    { file: "crlf.yaml", text: "domain: other\r\ndescriptors:\r\n  - key: a\r\n    valu: b\r\n" },
    { file: "tabs.yaml", text: "domain:\tthird\ndescriptors:\t[{key:\ta,\tvalu: b}]" },
  ],
  "generated-crlf-policy": () => [
    { file: "crlf.yaml", text: "\ufeffdomain: shop\r\ndescriptors:\r\n- key: a\r\n  value: b\r\n" },
  ],
  "generated-metadata-bounds": () => [
    {
      file: "shop.yaml",
      text: `domain: a\ndescriptors: [{key: a, metadata: {a: ${"x".repeat(metadataCharsMax)}}}]\n`,
    },
  ],
  "generated-too-large": () => [
    { file: "large.yaml", text: `domain: shop\n#${"x".repeat(fileCharsMax)}` },
    { file: "small.yaml", text: "domain: shop\nunit: day\n" },
  ],
  "generated-templates": () => [
    {
      file: "policy.yaml",
      text: [
        "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\nspec:",
        "  services: [{name: shop, admission: {}}]\n  waitingRooms:",
        ...["bell", "huge", "long"].map((name) => {
          const page = `{templateFile: ${name}.html}`;
          return `    - {name: ${name}, service: shop, match: {paths: [/${name}]}, page: ${page}}`;
        }),
      ].join("\n"),
    },
    { file: "bell.html", text: "<p>{{position}}\n<p>\u0007" },
    { file: "huge.html", text: "x".repeat(fileCharsMax + 1) },
    { file: "long.html", text: "x".repeat(templateCharsMax + 1) },
  ],
  "generated-templates-alone": () => [{ file: "lobby.html", text: "<p>{{position}}" }],
  "generated-too-many-parts": () => [{ file: "parts.yaml", text: `[${",".repeat(lexemesMax)}` }],
};

function storedCase(name: string): readonly PolicyText[] {
  const folder = join(root, name);
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = found.filter((file) => /^[^/]+\.yaml$|\.html$/.test(file));
  return files.sort().map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") }));
}

interface Expected {
  readonly file: string;
  readonly text: string;
}

function parseCase(name: string, sources: readonly PolicyText[]): Expected {
  const regionCount = /^regions-(\d+)$/.exec(name)?.[1];
  const parsed = parsePolicy(sources, {
    mergesDomains: name.startsWith("merged-"),
    ...(regionCount !== undefined && { regionCount: Number(regionCount) }),
  });
  if (parsed.kind === "problems") {
    return { file: "problems.txt", text: `${formatProblems(parsed)}\n` };
  }
  const { domains, services, quotas, waitingRooms, budgets, prices, proxies, rules } = parsed;
  const own = proxies === defaultProxies ? [] : [{ proxies }];
  const top = [
    { domains },
    ...services.map((service) => ({ service })),
    ...quotas.map((quota) => ({ quota })),
    ...waitingRooms.map((room) => ({ room })),
    ...budgets.map((budget) => ({ budget })),
    ...(prices === undefined ? [] : [{ prices }]),
    ...own,
  ];
  // Sets and maps have no form in JSON.
  const spread = (_: string, value: unknown) =>
    value instanceof Set || value instanceof Map ? [...value] : value;
  const odd = parsed.warnings.problems.map(({ file, line, column, id, message }) => {
    return { warning: `${file}:${line}:${column}: ${id} ${message}` };
  });
  const lines = [...top, ...rules, ...odd].map((line) => JSON.stringify(line, spread));
  return { file: "rules.jsonl", text: `${lines.join("\n")}\n` };
}

/** Holds a case against its file, or rewrites the file; a file of the other outcome is stale. */
function check(name: string, sources: readonly PolicyText[]): void {
  const folder = join(root, name, "expected");
  const { file, text } = parseCase(name, sources);
  if (isUpdating) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([file]);
  expect(text).toBe(readFileSync(join(folder, file), "utf8"));
}

function folderNames(): readonly string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

const storedNames = folderNames().filter((name) => !name.startsWith("generated-"));

describe("parsePolicy()", () => {
  it.each(storedNames)("gives what is expected of %s", (name) => {
    check(name, storedCase(name));
  });

  it.each(Object.entries(generatedCases))("gives what is expected of %s", (name, make) => {
    check(name, make());
  });
});

describe("the golden cases of policies", () => {
  it("have no folder that no case uses", () => {
    const stale = folderNames().filter(
      (name) => name.startsWith("generated-") && generatedCases[name] === undefined,
    );
    if (isUpdating) for (const name of stale) rmSync(join(root, name), { recursive: true });
    expect(isUpdating ? [] : stale).toEqual([]);
    expect(storedNames.filter((name) => storedCase(name).length === 0)).toEqual([]);
  });

  it("reach every problem id of the table", () => {
    const texts = folderNames().map((name) => {
      const folder = join(root, name, "expected");
      const [file = ""] = existsSync(folder) ? readdirSync(folder) : [];
      return file === "" ? "" : readFileSync(join(folder, file), "utf8");
    });
    const reached = new Set(texts.join("\n").match(/(?<=^[^\s].*:\d+:\d+: )HG\d+/gm));
    expect(Object.keys(problemRows).filter((id) => !reached.has(id))).toEqual([]);
  });
});
