import { describe, expect, it } from "vitest";
import {
  existingCharsMax,
  existingDocumentsMax,
  readExisting,
} from "../../../../src/generate/base/existing-object.js";

const read = (text: string) => readExisting([{ file: "with.yaml", text }]);

const head = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n";

const rule = (more: string) => `${head}metadata: {${more}}\nspec: {host: a}\n`;

/** What is wrong, and where. */
const reported = (text: string) => {
  const { objects, problems } = read(text);
  expect(objects).toEqual([]);
  return problems.map(({ line, column, id, message }) => `${line}:${column} ${id} ${message}`);
};

describe("readExisting()", () => {
  it("reads documents, and knows the lines of each", () => {
    const [first, second] = ["a", "b"].map((name) => rule(`name: ${name}, namespace: shop`));
    const text = `# Mine\n${first}---\n${second}`;
    const { objects, problems } = read(text);
    expect(problems).toEqual([]);
    expect(
      objects.map(({ kind, group, namespace, name }) => [group, kind, namespace, name]),
    ).toEqual([
      ["networking.istio.io", "DestinationRule", "shop", "a"],
      ["networking.istio.io", "DestinationRule", "shop", "b"],
    ]);
    expect(objects.map(({ placeOf }) => placeOf(["spec", "host"]))).toEqual([
      "with.yaml:5:14",
      "with.yaml:10:14",
    ]);
    // The nearest that is there.
    expect(objects[1]?.placeOf(["spec", "trafficPolicy", "tls"])).toBe("with.yaml:10:7");
  });

  it("opens what kubectl gets, without what a cluster notes", () => {
    const metadata = {
      name: "a",
      namespace: "shop",
      uid: "1",
      resourceVersion: "2",
      managedFields: [],
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    };
    const item = { apiVersion: "networking.istio.io/v1", kind: "Sidecar", metadata, spec: {} };
    const list = { apiVersion: "v1", kind: "List", items: [{ ...item, status: { x: 1 } }] };
    const { objects } = read(JSON.stringify(list));
    expect(objects.map(({ object }) => object)).toEqual([
      { ...item, metadata: { name: "a", namespace: "shop" } },
    ]);
  });

  it("leaves out what Headgate has made", () => {
    const labels = "labels: {app.kubernetes.io/managed-by: headgate}";
    expect(read(rule(`name: a, namespace: shop, ${labels}`))).toEqual({
      objects: [],
      problems: [],
    });
  });

  it("follows aliases, and takes a name for a name", () => {
    const text = `${rule("name: a, namespace: shop, labels: &l {__proto__: x}, annotations: *l")}`;
    const { objects } = read(text);
    expect(JSON.stringify(objects[0]?.object)).toContain(
      '"labels":{"__proto__":"x"},"annotations":{"__proto__":"x"}',
    );
  });

  it.each([
    ["a text", "hello\n", "1:1 HG370 this is not a Kubernetes object"],
    ["no YAML", "a: [1\nb: {", "2:1 HG101 a list in brackets is not closed"],
    ["a list", "- a\n", "1:1 HG370 this is not a Kubernetes object"],
    ["no name", rule("namespace: shop"), "1:1 HG370 this is not a Kubernetes object"],
    ["no namespace", rule("name: a"), '1:1 HG370 DestinationRule "a" has no metadata.namespace'],
    ["values of Helm", "replicas: 2\n", "1:1 HG370 this is not a Kubernetes object"],
    [
      "a name twice",
      `${rule("name: a, namespace: b")}spec: {}\n`,
      '5:1 HG103 "spec" is defined twice',
    ],
    ["a merge key", rule("<<: {name: a}"), "3:12 HG104 write the merged settings out in full"],
    ["a tag", `--- !!js/function x\n`, "1:5 HG105"],
    ["a broken second document", `${rule("name: a, namespace: b")}---\nx: [`, "6:"],
    ["control characters", "a: \u0007\n", "1:4 HG102"],
    ["a binary", "\u0000\ufffd\ufffd", "1:1 HG102"],
  ])("says what is wrong with %s", (_, text, message) => {
    const { problems } = read(text);
    const [first] = problems.map((one) => `${one.line}:${one.column} ${one.id} ${one.message}`);
    expect(first).toContain(message);
  });

  it("says that aliases expand to too much", () => {
    const rows = Array.from({ length: 20 }, (_, at) => {
      const before = `*a${at - 1}`;
      return `a${at}: &a${at} [${at === 0 ? "x" : Array(9).fill(before).join(",")}]`;
    });
    expect(reported(rows.join("\n"))[0]).toContain("HG113 the file's aliases expand to too much");
  });

  it("says that it is nested too deeply", () => {
    expect(reported("[".repeat(100_000))[0]).toContain("HG108 nested too deeply");
  });

  it.each([
    ["characters", " ".repeat(existingCharsMax + 1)],
    ["documents", "\n---".repeat(existingDocumentsMax)],
  ])("bounds %s", (_, text) => {
    expect(reported(text)).toEqual(["1:1 HG370 the file is too large"]);
  });

  it("counts characters of all files", () => {
    const text = `#${" ".repeat(existingCharsMax / 2)}\n`;
    const files = ["a", "b"].map((file) => ({ file, text }));
    expect(readExisting(files).problems.map(({ file }) => file)).toEqual(["b"]);
  });
});
