import { describe, expect, it } from "vitest";
import type { Document, DocumentKind, Tree } from "../../../../src/generate/base/document.js";
import { defaultGenerateOptions } from "../../../../src/generate/base/generate-options.js";
import { envoyCheck } from "../../../../src/generate/check/check-documents.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

const check = envoyCheck(readEnvoyApi());

function messagesOf(kind: DocumentKind, ...parts: readonly Tree[]): readonly string[] {
  const document: Document = { path: "a.yaml", kind, parts, title: "" };
  return check([document], defaultGenerateOptions).map(({ id, message }) => `${id} ${message}`);
}

const kubernetes: DocumentKind = { format: "yaml", is: "kubernetes" };

function envoyFilter(applyTo: string, operation: string, value: Tree): Tree {
  const configPatches = [{ applyTo, match: {}, patch: { operation, value } }];
  return {
    apiVersion: "networking.istio.io/v1alpha3",
    kind: "EnvoyFilter",
    spec: { configPatches },
  };
}

function patchPolicy(path: string, value: Tree, type = "envoy.config.listener.v3.Listener"): Tree {
  const operation = { op: "add", path, value };
  const patch = { type: `type.googleapis.com/${type}`, name: "a", operation };
  return { kind: "EnvoyPatchPolicy", spec: { type: "JSONPatch", jsonPatches: [patch] } };
}

const place = "spec.configPatches[0].patch.value";

describe("envoyCheck()", () => {
  it("checks a document as the message that it says it is, and lists of one", () => {
    const kind: DocumentKind = {
      format: "yaml",
      is: "envoy",
      message: "envoy.config.cluster.v3.Cluster",
    };
    expect(messagesOf(kind, { name: "a" })).toEqual([]);
    expect(messagesOf(kind, { nam: "a", name: "b" })).toEqual([
      expect.stringMatching(/^HG450 a.yaml: nam: "nam" is not a field/),
    ]);
    expect(messagesOf(kind, [{ name: "a" }, { name: "" }], { name: "" })).toEqual([
      expect.stringMatching(/^HG452 a.yaml: \[0\]\[1\].name: name is ""/),
      expect.stringMatching(/^HG452 a.yaml: \[1\].name: name is ""/),
    ]);
  });

  it.each([
    ["CLUSTER", "MERGE", { circuit_breakers: { threshold: [] } }, `${place}.circuit_breakers.thre`],
    ["CLUSTER", "ADD", { name: "" }, `HG452 a.yaml: ${place}.name`],
    ["BOOTSTRAP", "MERGE", { overload_manager: { refresh: "1s" } }, "overload_manager.refresh"],
    ["HTTP_FILTER", "INSERT_BEFORE", { name: "a", config: {} }, `HG450 a.yaml: ${place}.config`],
    ["VIRTUAL_HOST", "MERGE", { rate_limits: [{ actions: [] }] }, "rate_limits[0].actions"],
    ["SOMETHING", "ADD", { name: "a" }, 'HG453 a.yaml: spec.configPatches[0]: applyTo "SOMETHING"'],
  ])("reads what an EnvoyFilter has for a %s to %s", (applyTo, operation, value, part) => {
    const found = messagesOf(kubernetes, envoyFilter(applyTo, operation, value));
    expect(found).toEqual([expect.stringContaining(part)]);
  });

  it("asks a patch that is merged for nothing more, and a removal for nothing at all", () => {
    const outlier = { outlier_detection: { consecutive_5xx: 5 } };
    expect(messagesOf(kubernetes, envoyFilter("CLUSTER", "MERGE", outlier))).toEqual([]);
    const removal = { kind: "EnvoyFilter", spec: { configPatches: [{ applyTo: "CLUSTER" }] } };
    expect(messagesOf(kubernetes, removal)).toEqual([]);
  });

  it.each([
    [
      "/default_filter_chain/filters/0/typed_config/http_filters/0",
      { nam: "a", name: "b" },
      "HG450",
    ],
    ["/filter_chains/0/filters/-", { name: "" }, "HG452"],
    ["/filter_chains", [{ filters: [{ name: "" }] }], "value[0].filters[0].name"],
    ["/filter_chainz/0", { name: "a" }, "HG453"],
    ["/name/deeper", "a", "HG453"],
    ["/access_log/0/typed_config/path", "a", "HG453"],
  ])("reads what an EnvoyPatchPolicy puts at %s", (path, value, part) => {
    const found = messagesOf(kubernetes, patchPolicy(path, value));
    expect(found).toEqual([expect.stringContaining(part)]);
  });

  it("follows JSON paths and the keys of maps", () => {
    const route = "envoy.config.route.v3.RouteConfiguration";
    const operation = {
      op: "add",
      jsonPath: "..virtual_hosts[?(@.name=='a.b')].routes[*]",
      path: "/typed_per_filter_config/envoy.filters.http.ratelimit",
      value: { "@type": "type.googleapis.com/envoy.Nothing" },
    };
    const patch = { type: `type.googleapis.com/${route}`, operation };
    const found = messagesOf(kubernetes, {
      kind: "EnvoyPatchPolicy",
      spec: { jsonPatches: [patch] },
    });
    expect(found).toEqual([expect.stringContaining("operation.value.@type")]);
    expect(messagesOf(kubernetes, patchPolicy("/name", "b"))).toEqual([]);
  });

  it("finds a name that a JSON path has at any depth", () => {
    const operation = {
      op: "add",
      jsonPath: "$..http_filters[0]",
      path: "",
      value: { name: "" },
    };
    const patch = { type: "type.googleapis.com/envoy.config.listener.v3.Listener", operation };
    const found = messagesOf(kubernetes, {
      kind: "EnvoyPatchPolicy",
      spec: { jsonPatches: [patch] },
    });
    expect(found).toEqual([expect.stringContaining("HG452 a.yaml")]);
  });

  it("reads the bootstrap in an EnvoyProxy, in a ConfigMap, and in a list of objects", () => {
    const text = "admin: {adress: {}}\n";
    const proxy = { kind: "EnvoyProxy", spec: { bootstrap: { type: "Merge", value: text } } };
    const map = {
      kind: "ConfigMap",
      data: { "custom_bootstrap.json": '{"admin": {"adress": {}}}' },
    };
    for (const part of [proxy, map, { kind: "List", items: [proxy] }]) {
      expect(messagesOf(kubernetes, part)).toEqual([expect.stringContaining("admin.adress")]);
    }
    const broken = { kind: "EnvoyProxy", spec: { bootstrap: { value: "a: [" } } };
    expect(messagesOf(kubernetes, broken)).toEqual([expect.stringContaining("HG453")]);
  });

  it("leaves other objects, rules and texts alone", () => {
    expect(messagesOf(kubernetes, { kind: "Service", spec: {} }, "text", [1])).toEqual([]);
    expect(messagesOf({ format: "yaml", is: "rules" }, { groups: [] })).toEqual([]);
    expect(messagesOf({ format: "text" }, "a")).toEqual([]);
  });
});
