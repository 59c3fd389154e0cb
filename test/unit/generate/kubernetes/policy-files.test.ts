import { describe, expect, it } from "vitest";
import { configMapBytes, policyFiles } from "../../../../src/generate/kubernetes/policy-files.js";

function names(...files: readonly string[]): readonly string[] {
  return Object.keys(policyFiles(files.map((file) => ({ file, text: "" }))));
}

describe("policyFiles()", () => {
  it.each([
    ["policy.yaml", "policy.yaml"],
    ["a/b/shop.yml", "shop.yml"],
    ["Shop policy (1).yaml", "Shop-policy--1-.yaml"],
    ["policy", "policy.yaml"],
    ["policy.json", "policy.json.yaml"],
    // Headgate reads no files of a directory whose names begin with two dots.
    ["..data.yaml", "data.yaml"],
    [".yaml", "yaml.yaml"],
    ["", "policy.yaml"],
    ["-", "-.yaml"],
  ])("calls %j %j", (file, name) => {
    expect(names(file)).toEqual([name]);
  });

  it("gives files of one name numbers", () => {
    expect(names("a/x.yaml", "b/x.yaml", "x-2.yaml", "c/x.yaml")).toEqual([
      "x.yaml",
      "x-2.yaml",
      "x-2-2.yaml",
      "x-3.yaml",
    ]);
  });

  it("keeps the names of pages, and leaves out what no room can name", () => {
    expect(names("shop.yaml", "a/lobby.html", "a b.html", ".html", "lobby.html.yaml")).toEqual([
      "shop.yaml",
      "lobby.html",
      "lobby.html.yaml",
    ]);
  });

  it("makes no name that is longer than a ConfigMap takes", () => {
    const [name = ""] = names(`${"n".repeat(300)}.yaml`);
    expect(name).toHaveLength(253);
    expect(name.endsWith(".yaml")).toBe(true);
  });

  it("takes a name that objects have by themselves for a name", () => {
    const files = policyFiles([{ file: "__proto__", text: "x" }]);
    expect(Object.entries(files)).toEqual([["__proto__.yaml", "x"]]);
  });
});

describe("configMapBytes()", () => {
  it("counts names and texts as they are encoded", () => {
    expect(configMapBytes({ "a.yaml": "äb", b: "" })).toBe(6 + 3 + 1);
  });
});
