import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { subjectAltNamesMax } from "../../../../src/policy/upstream/client-tls.js";

/** The ids of what is wrong with `tls` of a listener. */
function idsOf(tls: string): readonly string[] {
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\n";
  const text = `${head}spec: {proxies: {listener: {tls: ${tls}}}}`;
  const parsed = parsePolicy([{ file: "a.yaml", text }]);
  return parsed.kind === "problems" ? parsed.problems.map(({ id }) => id) : [];
}

const files = "certFile: /a, keyFile: /b";
const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`).join();

describe("readListenerTls()", () => {
  it.each<readonly [string, string, readonly string[]]>([
    ["a certificate and its key", `{${files}}`, []],
    ["names of callers", `{${files}, clientCaFile: /c, subjectAltNames: [a]}`, []],
    ["a secret", "{secret: shop.tls}", []],
    ["names of callers of a secret", "{secret: a, mutual: true, subjectAltNames: [a]}", []],
    ["nothing", "{}", ["HG125"]],
    ["authorities alone", "{clientCaFile: /c}", ["HG125"]],
    ["a key alone", "{keyFile: /b}", ["HG207"]],
    ["files and a secret", `{${files}, secret: a}`, ["HG126"]],
    ["authorities of files and a secret", "{secret: a, clientCaFile: /c}", ["HG126"]],
    ["mutual without a secret", `{${files}, mutual: true}`, ["HG207"]],
    ["names of callers who show nothing", `{${files}, subjectAltNames: [a]}`, ["HG207"]],
    [
      "names of a secret's callers who show nothing",
      "{secret: a, subjectAltNames: [a]}",
      ["HG207"],
    ],
    ["a secret that is none", "{secret: a_b}", ["HG226"]],
    ["TLS that is too old", `{${files}, minVersion: TLSv1_1}`, ["HG133"]],
  ])("looks at %s", (_, tls, ids) => {
    expect(idsOf(tls)).toEqual(ids);
  });

  it(`takes up to ${subjectAltNamesMax} names`, () => {
    const tls = (count: number) =>
      `{${files}, clientCaFile: /c, subjectAltNames: [${names(count)}]}`;
    expect(idsOf(tls(subjectAltNamesMax))).toEqual([]);
    expect(idsOf(tls(subjectAltNamesMax + 1))).toEqual(["HG160"]);
  });
});
