import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { domainForms } from "../../src/policy/limits/domain.js";
import { policyForm } from "../../src/policy/policy-form.js";
import { makeJsonSchema } from "../../src/policy/text/json-schema.js";

const root = fileURLToPath(new URL("./policy", import.meta.url));
const ajv = new Ajv2020({ allowUnionTypes: true });
const validators = {
  policy: ajv.compile(makeJsonSchema(policyForm, { title: "policy" })),
  ratelimit: ajv.compile(makeJsonSchema(domainForms.ratelimit, { title: "ratelimit" })),
};

/** As an editor's language server reads it: merge keys and all. */
function readFile(folder: string, file: string): unknown {
  const text = readFileSync(join(root, folder, file), "utf8");
  const document = parseDocument(text, { merge: true, uniqueKeys: false, strict: false });
  return document.toJS();
}

function validate(value: unknown): { readonly isRight: boolean; readonly errors: string } {
  const isPolicy = typeof value === "object" && value !== null && "apiVersion" in value;
  const validator = isPolicy ? validators.policy : validators.ratelimit;
  const isRight = validator(value);
  const errors = (validator.errors ?? []).map((e) => `${e.instancePath} ${e.message}`);
  return { isRight, errors: errors.join("\n") };
}

/** What one value shows that is wrong: misspelt, missing, of the wrong kind, out of range. */
const schemaIds = new Set(
  ["HG111", "HG120", "HG121", "HG122", "HG125", "HG130", "HG133", "HG140", "HG142"].concat([
    "HG201",
    "HG202",
    "HG241",
  ]),
);

interface Case {
  readonly folder: string;
  readonly file: string;
  /** Ids of what is wrong with the file. */
  readonly ids: readonly string[];
}

function readCases(): readonly Case[] {
  const folders = readdirSync(root).filter((name) => !name.startsWith("generated-"));
  return folders.flatMap((folder) => {
    const report = join(root, folder, "expected", "problems.txt");
    const problems = existsSync(report) ? readFileSync(report, "utf8") : "";
    const files = readdirSync(join(root, folder)).filter((file) => file.endsWith(".yaml"));
    return files.map((file) => {
      const lines = problems.split("\n").filter((line) => line.startsWith(`${file}:`));
      return { folder, file, ids: lines.flatMap((line) => /HG\d+/.exec(line)?.[0] ?? []) };
    });
  });
}

const cases = readCases();

describe("the schema of policies", () => {
  it.each(cases.filter(({ ids }) => ids.length === 0))("takes $folder/$file", (each) => {
    const { isRight, errors } = validate(readFile(each.folder, each.file));
    // A file that is right by itself may be beside a wrong one.
    expect(isRight, errors).toBe(true);
  });

  /** No value comes of what an alias or a merge key does not lead to. */
  const isReadable = ({ ids }: Case) => !ids.includes("HG104") && !ids.includes("HG112");
  const wrong = cases.filter((one) => isReadable(one) && one.ids.some((id) => schemaIds.has(id)));
  it.each(wrong)("refuses $folder/$file", ({ folder, file }) => {
    expect(validate(readFile(folder, file)).isRight).toBe(false);
  });
});
