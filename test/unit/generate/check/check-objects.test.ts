import { describe, expect, it } from "vitest";
import { objectCheck } from "../../../../src/generate/check/check-objects.js";
import type { DocumentKind, Tree } from "../../../../src/generate/document.js";
import { usualGenerateOptions } from "../../../../src/generate/generate-options.js";
import { readSchemas } from "../../../support/object-schemas.js";

const check = objectCheck(readSchemas());

function messagesOf(kind: DocumentKind, ...parts: readonly Tree[]): readonly string[] {
  const document = { path: "a.yaml", kind, parts, title: "" };
  return check([document], usualGenerateOptions).map(({ id, message, severity }) => {
    return `${severity} ${id} ${message}`;
  });
}

const kubernetes: DocumentKind = { format: "yaml", is: "kubernetes" };

describe("objectCheck()", () => {
  it("names the file, the object and the place of what is wrong", () => {
    const spec = { ports: [{ port: "http" }] };
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "a" }, spec };
    const there = { ...service, metadata: { name: "a", namespace: "shop" } };
    expect(messagesOf(kubernetes, service, there, "text")).toEqual([
      "error HG456 a.yaml: Service a: spec.ports[0].port: must be integer",
      "error HG456 a.yaml: Service shop/a: spec.ports[0].port: must be integer",
      'error HG456 a.yaml: no object: kind: there is no "" in ""',
    ]);
  });

  it("leaves what is no object of Kubernetes alone", () => {
    expect(messagesOf({ format: "yaml", is: "values" }, { kind: "Service" })).toEqual([]);
    expect(messagesOf({ format: "text" }, "a")).toEqual([]);
  });
});
