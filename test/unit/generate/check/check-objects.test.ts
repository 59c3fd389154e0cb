import { describe, expect, it } from "vitest";
import type { DocumentKind, Tree } from "../../../../src/generate/base/document.js";
import { defaultGenerateOptions } from "../../../../src/generate/base/generate-options.js";
import { objectCheck } from "../../../../src/generate/check/check-objects.js";
import { readSchemas } from "../../../support/object-schemas.js";

const check = objectCheck(readSchemas());

function messagesOf(kind: DocumentKind, ...parts: readonly Tree[]): readonly string[] {
  const document = { path: "a.yaml", kind, parts, title: "" };
  return check([document], defaultGenerateOptions).map(({ id, message, severity }) => {
    return `${severity} ${id} ${message}`;
  });
}

const kubernetes: DocumentKind = { format: "yaml", is: "kubernetes" };

const mapOf = (name: string, text: string) => {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { text } };
};
const problemsOf = (...parts: ReturnType<typeof mapOf>[]) => {
  return check([{ path: "a.yaml", kind: kubernetes, parts, title: "" }], defaultGenerateOptions);
};

describe("objectCheck()", () => {
  it("names the file, the object and the place of what is wrong", () => {
    const spec = { ports: [{ port: "http" }] };
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "a" }, spec };
    const there = { ...service, metadata: { name: "a", namespace: "shop" } };
    expect(messagesOf(kubernetes, service, there, "text")).toEqual([
      "error HG456 a.yaml: Service a: spec.ports[0].port: must be integer",
      "error HG456 a.yaml: Service shop/a: spec.ports[0].port: must be integer",
      'error HG456 a.yaml: no object: kind: "" has no kind ""',
    ]);
  });

  it("leaves what is no object of Kubernetes alone", () => {
    expect(messagesOf({ format: "yaml", is: "values" }, { kind: "Service" })).toEqual([]);
    expect(messagesOf({ format: "text" }, "a")).toEqual([]);
  });

  it("refuses an object that no cluster takes, and says what to do", () => {
    const spare = JSON.stringify(mapOf("a", "")).length;
    expect(problemsOf(mapOf("a", "x".repeat(1_507_328 - spare)))).toEqual([]);
    expect(problemsOf(mapOf("a", "ä".repeat((1_507_328 - spare) / 2 + 1)))).toEqual([
      {
        id: "HG459",
        spot: { service: undefined, path: [] },
        message: "a.yaml: ConfigMap a has 1507329 bytes, and a cluster accepts at most 1507328",
        hint: "give its services fewer limits, or move some of them to another policy",
        severity: "error",
      },
    ]);
  });

  it("refuses two objects of one name, of which a cluster would keep the last", () => {
    expect(problemsOf(mapOf("a", "x"), mapOf("b", "x"))).toEqual([]);
    expect(problemsOf(mapOf("a", "x"), mapOf("a", "y"))).toMatchObject([
      { id: "HG458", message: "a.yaml: ConfigMap a is defined twice" },
    ]);
  });
});
