import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { checkedCharsMax, checkText } from "../../../../src/generate/check/check-text.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

const api = readEnvoyApi();

function problemsOf(...lines: readonly string[]): readonly string[] {
  return checkText(lines.join("\n"), api).map(
    ({ line, column, id, severity }) => `${line}:${column} ${severity} ${id}`,
  );
}

describe("checkText()", () => {
  it("finds what is wrong in a bootstrap, where it stands", () => {
    expect(
      problemsOf(
        "static_resources:",
        "  clusters:",
        "    - name: a",
        "      conect_timeout: 1s",
        "      connect_timeout: 0s",
        "      circuit_breakers: {}",
        "    - {name: a}",
      ),
    ).toEqual(["3:7 warning HG423", "4:23 error HG450", "5:24 error HG452", "7:7 error HG414"]);
  });

  it("reads JSON, several documents, objects of Kubernetes, aliases and merges", () => {
    expect(problemsOf('{"admin": {"adress": 1}}')).toEqual(["1:22 error HG450"]);
    expect(problemsOf("admin: {}", "---", "node: {ids: a}")).toEqual(["3:13 error HG450"]);
    const filter = [
      "apiVersion: networking.istio.io/v1alpha3",
      "kind: EnvoyFilter",
      "spec:",
      "  configPatches:",
      "    - {applyTo: CLUSTER, patch: {operation: MERGE, value: {names: a}}}",
    ];
    expect(problemsOf(...filter)).toEqual(["5:67 error HG450"]);
    const shared = ["node: &a {id: a}", "static_resources:", "  clusters:", "    - <<: {name: b}"];
    expect(problemsOf(...shared)).toEqual([]);
    expect(problemsOf("node: &a {ids: a}", "admin: *a")).toHaveLength(2);
  });

  it("takes what is empty for absent", () => {
    expect(problemsOf("admin:", "node: {id: null}")).toEqual([]);
    expect(problemsOf("")).toEqual([]);
    expect(problemsOf("# nothing")).toEqual([]);
  });

  it("says of what it cannot read why, and where", () => {
    expect(problemsOf("a: [")).toEqual(["1:5 error HG451"]);
    expect(problemsOf("- a")).toEqual(["1:3 error HG451"]);
    expect(problemsOf("text")).toEqual(["1:1 error HG451"]);
    expect(checkText("#".repeat(checkedCharsMax + 1), api)).toMatchObject([
      { id: "HG451", message: "the text is too long" },
    ]);
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [from, to] of ["ab", "bc", "cd", "de"].map((pair) => [...pair])) {
      bomb.push(`${to}: &${to} [${Array.from({ length: 10 }, () => `*${from}`).join(", ")}]`);
    }
    expect(checkText(bomb.join("\n"), api)).toMatchObject([
      { id: "HG451", message: "its aliases expand to too much" },
    ]);
  });

  it("finds no error in the configurations that we show", () => {
    const folder = fileURLToPath(new URL("../../../../envoy", import.meta.url));
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter(({ name }) => name === "envoy.yaml");
    expect(files.length).toBeGreaterThan(0);
    for (const { parentPath, name } of files) {
      const text = readFileSync(join(parentPath, name), "utf8");
      const errors = checkText(text, api).filter(({ severity }) => severity === "error");
      expect(errors, join(parentPath, name)).toEqual([]);
    }
  });
});
