import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tree } from "../../src/generate/base/document.js";
import { plainTree } from "../../src/generate/base/plain-tree.js";
import {
  type CertificateFiles,
  refusalsByEnvoy,
  writeCertificates,
} from "../support/envoy-validation.js";
import {
  type CaseOutcome,
  checks,
  expectedFiles,
  type GeneratedCase,
  generateCase,
  generatedCases,
  renderCase,
  strayFolders,
  writeExpected,
} from "../support/generated.js";

/**
 * Each folder `generate/<target>/<case>` is a policy, options where they are not the usual ones,
 * and in `expected` every file that comes of them, or `problems.txt`.
 */
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";
const cases = generatedCases();
const outcomes = new Map<GeneratedCase, CaseOutcome>();

/** What the case gives, generated where it is first asked for. */
function outcomeOf(given: GeneratedCase): CaseOutcome {
  const outcome = outcomes.get(given) ?? generateCase(given);
  outcomes.set(given, outcome);
  return outcome;
}

describe("generate()", () => {
  it.each(cases.map((given) => [given.name, given] as const))(
    "gives what %s expects",
    (_, given) => {
      const files = renderCase(given, outcomeOf(given));
      if (isUpdating) writeExpected(given, files);
      expect(Object.fromEntries(files)).toEqual(Object.fromEntries(expectedFiles(given)));
      // Where nothing was found at fault, the documents alone are made once more.
      const looks = files.has("problems.txt") ? checks : [];
      const again = renderCase(given, generateCase(given, { looks }));
      expect(Object.fromEntries(again)).toEqual(Object.fromEntries(files));
    },
  );

  it("has no golden case of a target that is not there", () => {
    expect(strayFolders()).toEqual([]);
  });
});

/** Envoy takes a tenth of a second for one; on a machine that is busy, many times that. */
const verifyMsMax = 120_000;

describe("Envoy itself", () => {
  let folder = "";
  let certificates: CertificateFiles;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "headgate-golden-"));
    certificates = writeCertificates(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const envoyCases = cases.filter(({ target }) => target === "envoy");
  it.concurrent.each(envoyCases.map((given) => [given.name, given] as const))(
    "takes what %s gives",
    async (_, given) => {
      const { documents } = outcomeOf(given);
      const refusals = await refusalsByEnvoy(documents, certificates);
      expect(refusals).toEqual([]);
    },
    verifyMsMax,
  );

  it(
    "refuses one that leads nowhere, and says why",
    async () => {
      const given = envoyCases.find(({ name }) => name === "envoy/minimal");
      const documents = given === undefined ? [] : outcomeOf(given).documents.slice(0, 1);
      const wrong = documents.map((document) => {
        const text = JSON.stringify(document.parts.map(plainTree));
        const parts: readonly Tree[] = JSON.parse(text.replaceAll('"cluster":"', '"cluster":"no-'));
        return { ...document, parts };
      });
      const refusals = await refusalsByEnvoy(wrong, certificates);
      expect(refusals).toEqual([expect.stringMatching(/exit code 1: .*no-/s)]);
    },
    verifyMsMax,
  );
});
