import { createFileRegistry, type DescField, fromBinary, fromJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { readEnvoyImage } from "../../../../src/app/config/envoy-image.js";
import { formatJsonPath } from "../../../../src/generate/base/check-problem.js";
import type { PlainValue } from "../../../../src/generate/base/plain-tree.js";
import { checkMessage } from "../../../../src/generate/check/check-message.js";
import { messageNestingMax } from "../../../../src/generate/check/read-message.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

const api = readEnvoyApi();
const cluster = "envoy.config.cluster.v3.Cluster";
const types = "type.googleapis.com";

/** Each problem as `path: id message (hint)`. */
function problemsOf(message: string, value: PlainValue, isPartial = false): readonly string[] {
  const { problems } = checkMessage({ message, value, path: [], isPartial }, api);
  return problems.map(
    ({ id, path, message: text, hint }) => `${formatJsonPath(path)}: ${id} ${text} (${hint})`,
  );
}

/** One of each form of field is enough: `map 9 google.protobuf.Value`. */
function kindOfField(field: DescField): string {
  const { fieldKind, scalar, message } = field;
  const ofOwnForm = message?.typeName.startsWith("google.protobuf.") ? message.typeName : "";
  const key = field.fieldKind === "map" ? field.mapKey : "";
  return `${fieldKind} ${key} ${scalar ?? ""} ${ofOwnForm} ${field.oneof !== undefined}`;
}

/** Values that readers of messages differ about. */
const plainHostile: readonly PlainValue[] = [
  ...["", "a", "A", "a_b", "a,b_c", "\ud800", "AA", "AAA=", "AAAAA", "-_", "A===", "a b", " 1"],
  ...["1", "1 ", "-1", "-0", "01", "1e3", "1e999", "0x10", "1_000", "NaN", "Infinity", "-Infinity"],
  ...["4294967296", "9223372036854775808", "18446744073709551616", "3.5e38", "true", "null"],
  ...["1s", "-1s", "1.5s", ".5s", "1.0123456789s", "315576000001s", "1970-01-01T00:00:00Z"],
  ...[
    "1970-13-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "1970-01-01 00:00:00Z",
    "10000-01-01T00:00:00Z",
  ],
  ...[0, 1, -1, 1.5, 3.5e38, 4_294_967_296, 1e19, 1e300, true, false],
];
const hostile: readonly PlainValue[] = [
  ...plainHostile,
  ...plainHostile.map((value) => [value]),
  ...plainHostile.map((value) => ({ a: value })),
  ...plainHostile.map((value) => ({ [String(value)]: 1 })),
  ...plainHostile.map((value) => ({ [String(value)]: "a" })),
  ...plainHostile.flatMap((value) =>
    ["Value", "Duration", "Timestamp", "FieldMask", "BytesValue", "FloatValue", "Int64Value"].map(
      (name) => ({ "@type": `${types}/google.protobuf.${name}`, value }),
    ),
  ),
  {},
  [],
  [[]],
  { a: {} },
];

describe("checkMessage()", () => {
  it("takes both forms of names, and wrappers as bare values", () => {
    const value = {
      name: "a",
      connectTimeout: "0.25s",
      per_connection_buffer_limit_bytes: 1_024,
      circuit_breakers: { thresholds: [{ priority: "HIGH", max_requests: 5 }] },
    };
    expect(problemsOf(cluster, value)).toEqual([]);
  });

  it("finds everything wrong with names, types and values at once, each at its place", () => {
    const value = {
      name: 5,
      conect_timeout: "1s",
      dns_lookup_family: "V5",
      type: "STATIC",
      lb_subset_config: { fallback_policy: 99 },
      circuit_breakers: {
        thresholds: { priority: "HIGH" },
        per_host_thresholds: [{ max_connections: -1, max_requests: 1.5, track_remaining: "yes" }],
      },
      outlier_detection: { interval: "10", base_ejection_time: 30, consecutive_5xx: "5" },
    };
    expect(problemsOf(cluster, value)).toEqual([
      'name: HG451 "name" is 5 (write a text, in quotes)',
      'conect_timeout: HG450 "conect_timeout" is not a field of ' +
        "envoy.config.cluster.v3.Cluster (did you mean connect_timeout)",
      'dns_lookup_family: HG451 "dns_lookup_family" is "V5" (write one of AUTO, V4_ONLY, V6_ONLY,' +
        " V4_PREFERRED, ALL)",
      'lb_subset_config.fallback_policy: HG451 "fallback_policy" is 99 (write one of NO_FALLBACK,' +
        " ANY_ENDPOINT, DEFAULT_SUBSET)",
      'circuit_breakers.thresholds: HG451 "thresholds" is a map (write a list)',
      'circuit_breakers.per_host_thresholds[0].max_connections: HG451 "max_connections" is -1' +
        " (write a whole number from 0 to 4294967295)",
      'circuit_breakers.per_host_thresholds[0].max_requests: HG451 "max_requests" is 1.5' +
        " (write a whole number from 0 to 4294967295)",
      'circuit_breakers.per_host_thresholds[0].track_remaining: HG451 "track_remaining" is "yes"' +
        " (write true or false)",
      'outlier_detection.interval: HG451 "interval" is "10" (write a duration such as "0.25s")',
      'outlier_detection.base_ejection_time: HG451 "base_ejection_time" is 30' +
        ' (write a duration such as "0.25s")',
      'name: HG452 name is "" (it must be at least 1 characters long)',
    ]);
  });

  it("refuses a name in both forms, and two names that exclude each other", () => {
    expect(problemsOf(cluster, { name: "a", type: "EDS", cluster_type: { name: "b" } })).toEqual([
      'cluster_type: HG451 "cluster_type" excludes another field that is set (keep ' +
        "one of the fields that exclude each other)",
    ]);
    expect(problemsOf(cluster, { name: "a", connectTimeout: "1s", connect_timeout: "1s" })).toEqual(
      [expect.stringContaining("connect_timeout: HG451")],
    );
  });

  it("reads what an Any holds as its type says, and knows no others", () => {
    const filter = "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter";
    const rls = `${types}/envoy.extensions.filters.http.ratelimit.v3.RateLimit`;
    const value = { name: "a", typed_config: { "@type": rls, domain: "", timout: "1s" } };
    expect(problemsOf(filter, value)).toEqual([
      expect.stringContaining('typed_config.timout: HG450 "timout" is not a field of'),
      'typed_config.domain: HG452 domain is "" (it must be at least 1 characters long)',
      "typed_config: HG452 RateLimit has no rate_limit_service (write rate_limit_service)",
    ]);
    for (const url of [`${types}/envoy.extensions.Nothing`, "a.b", 5]) {
      expect(problemsOf(filter, { name: "a", typed_config: { "@type": url } })).toHaveLength(1);
    }
    expect(problemsOf(filter, { name: "a", typed_config: { domain: "x" } })).toEqual([
      'typed_config: HG451 "typed_config" is a map (write a map with `@type`)',
    ]);
  });

  it.each([
    ["duration", cluster, { name: "a", connect_timeout: "0s" }, "more than 0s"],
    [
      "number",
      cluster,
      { name: "a", outlier_detection: { max_ejection_percent: 101 } },
      "at most 100",
    ],
    ["text", cluster, { name: "" }, "at least 1 characters long"],
    ["list", "envoy.config.route.v3.VirtualHost", { name: "a", domains: [] }, "write at least 1"],
    [
      "item",
      "envoy.config.route.v3.VirtualHost",
      { name: "a", domains: ["x\u0000"] },
      "a valid header value, without control characters",
    ],
    [
      "header",
      "envoy.config.core.v3.HeaderValue",
      { key: "a\nb", value: "c" },
      "a valid header name",
    ],
    ["double", "envoy.type.v3.Percent", { value: 100.5 }, "at most 100"],
    [
      "message that must be there",
      "envoy.config.route.v3.Route",
      { route: { cluster: "a" } },
      "write match",
    ],
    [
      "choice that must be made",
      "envoy.config.route.v3.Route",
      { match: { prefix: "/" } },
      "set one of them",
    ],
  ])("holds a %s to its rule", (_, message, value, hint) => {
    const found = problemsOf(message, value);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain("HG452");
    expect(found[0]).toContain(hint);
  });

  it("asks a piece that is merged into another for nothing that it has not", () => {
    const value = { outlier_detection: { max_ejection_percent: 101 } };
    expect(problemsOf(cluster, value, true)).toEqual([
      "outlier_detection.max_ejection_percent: HG452 max_ejection_percent is 101 " +
        "(it must be at most 100)",
    ]);
    expect(problemsOf(cluster, {}, true)).toEqual([]);
    expect(problemsOf("envoy.config.route.v3.Route", {}, true)).toEqual([]);
  });

  it("takes no value that the library for such messages refuses", () => {
    // It read each tree again; what it alone knew is known here since.
    const files = fromBinary(FileDescriptorSetSchema, readEnvoyImage());
    const registry = createFileRegistry(files);
    const fields = new Map<string, DescField>();
    for (const desc of registry) {
      if (desc.kind !== "message") continue;
      for (const field of desc.fields) fields.set(kindOfField(field), field);
    }
    expect(fields.size).toBeGreaterThan(80);
    const taken = [...fields].flatMap(([kind, { parent, name }]) =>
      hostile.flatMap((value): readonly string[] => {
        const tree = { [name]: value };
        if (problemsOf(parent.typeName, tree, true).some((text) => text.includes("HG45")))
          return [];
        try {
          fromJson(parent, JSON.parse(JSON.stringify(tree)), { registry });
          return [];
        } catch {
          return [`${kind}: ${JSON.stringify(value)}`];
        }
      }),
    );
    expect(taken).toEqual([]);
  });

  it("refuses what is nested more deeply than it reads", () => {
    const name = "envoy.config.route.v3.RouteAction";
    const match = "envoy.type.matcher.v3.MetadataMatcher";
    expect(problemsOf(name, { cluster: "a" })).toEqual([]);
    let value: PlainValue = { present_match: true };
    for (let depth = 0; depth < messageNestingMax / 2; depth += 1)
      value = { list_match: { one_of: value } };
    const found = problemsOf(match, { filter: "a", path: [{ key: "b" }], value });
    expect(found[0]).toContain("is nested too deeply");
  });

  it("knows its own messages only", () => {
    expect(problemsOf("envoy.Nothing", {})).toEqual([
      expect.stringContaining('HG450 "envoy.Nothing" is not a message of Envoy\'s API'),
    ]);
  });
});
