import { describe, expect, it } from "vitest";
import {
  filterDescriptors,
  rateLimitEntries,
} from "../../../../../src/generate/envoy/http/rate-limit-actions.js";
import type { DescriptorPart } from "../../../../../src/policy/services/descriptor-parts.js";
import type { ServicePolicy } from "../../../../../src/policy/services/service-policy.js";
import type { ServiceDescriptor } from "../../../../../src/policy/services/service-rate-limit.js";
import { askedOnce } from "../../../../../src/policy/services/service-rate-limit.js";
import { testService } from "../../../../support/admission.js";
import { apiProblems, plain, testContext } from "../../../../support/envoy-parts.js";

function limited(descriptors: readonly ServiceDescriptor[], inExtProc = false): ServicePolicy {
  return testService(undefined, { rateLimit: { domain: "edge", descriptors, inExtProc } });
}

/** The entries of these descriptors, and the ids of what was reported. */
function entries(descriptors: readonly ServiceDescriptor[], minor = 40) {
  const { context, problems } = testContext({ minor });
  const trees = rateLimitEntries(limited(descriptors), context);
  const wrong = trees.flatMap((tree) => apiProblems("envoy.config.route.v3.RateLimit", tree));
  expect(wrong).toEqual([]);
  return { found: trees.map(plain), problems: problems.map(({ id, hint }) => [id, hint]) };
}

const byUser: DescriptorPart = { kind: "header", header: "x-user", key: "user" };

const rows: readonly { readonly part: DescriptorPart; readonly action: unknown }[] = [
  { part: { kind: "remoteAddress", key: "remote_address" }, action: { remote_address: {} } },
  { part: { kind: "sourceCluster", key: "source_cluster" }, action: { source_cluster: {} } },
  {
    part: { kind: "destinationCluster", key: "destination_cluster" },
    action: { destination_cluster: {} },
  },
  {
    part: {
      kind: "maskedAddress",
      key: "masked_remote_address",
      v4PrefixBits: 24,
      v6PrefixBits: 64,
    },
    action: { masked_remote_address: { v4_prefix_mask_len: 24, v6_prefix_mask_len: 64 } },
  },
  {
    part: byUser,
    action: { request_headers: { header_name: "x-user", descriptor_key: "user" } },
  },
  {
    part: { kind: "query", parameter: "tenant", key: "tenant" },
    action: { query_parameters: { query_parameter_name: "tenant", descriptor_key: "tenant" } },
  },
  {
    part: { kind: "fixed", key: "plan", value: "free" },
    action: { generic_key: { descriptor_key: "plan", descriptor_value: "free" } },
  },
  {
    part: {
      kind: "headerMatch",
      key: "plan",
      value: "free",
      isMatch: false,
      matches: [
        { name: "x-plan", test: "present", text: "" },
        { name: "x-kind", test: "regex", text: "a|b" },
      ],
    },
    action: {
      header_value_match: {
        descriptor_key: "plan",
        descriptor_value: "free",
        expect_match: false,
        headers: [
          { name: "x-plan", present_match: true },
          { name: "x-kind", string_match: { safe_regex: { regex: "a|b" } } },
        ],
      },
    },
  },
  {
    part: {
      kind: "queryMatch",
      key: "export",
      value: "large",
      isMatch: true,
      matches: [{ name: "size", test: "prefix", text: "1000" }],
    },
    action: {
      query_parameter_value_match: {
        descriptor_key: "export",
        descriptor_value: "large",
        query_parameters: [{ name: "size", string_match: { prefix: "1000" } }],
      },
    },
  },
  {
    part: {
      kind: "metadata",
      key: "tenant",
      from: "route",
      namespace: "shop",
      path: ["tenant", "id"],
      fallback: "nobody",
    },
    action: {
      metadata: {
        descriptor_key: "tenant",
        metadata_key: { key: "shop", path: [{ key: "tenant" }, { key: "id" }] },
        default_value: "nobody",
        source: "ROUTE_ENTRY",
      },
    },
  },
  {
    part: { kind: "expression", key: "method", cel: "request.method" },
    action: {
      extension: {
        name: "envoy.rate_limit_descriptors.expr",
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
          descriptor_key: "method",
          text: "request.method",
        },
      },
    },
  },
];

describe("rateLimitEntries()", () => {
  it.each(rows)("makes Envoy's action of a $part.kind", ({ part, action }) => {
    expect(entries([askedOnce([part])])).toEqual({ found: [{ actions: [action] }], problems: [] });
  });

  it("says what a descriptor costs, whether it is given back, and when it is told", () => {
    const descriptors: readonly ServiceDescriptor[] = [
      { ...askedOnce([byUser]), hits: { kind: "fixed", count: 5 } },
      { ...askedOnce([byUser]), isRefund: true, when: "streamDone" },
      {
        ...askedOnce([byUser]),
        hits: { kind: "format", format: "%RESP(x-tokens-used)%" },
        when: "streamDone",
      },
    ];
    const { found, problems } = entries(descriptors);
    const actions = [{ request_headers: { header_name: "x-user", descriptor_key: "user" } }];
    expect(found).toEqual([
      { actions, hits_addend: { number: 5 } },
      {
        actions,
        hits_addend: { number: 1, is_negative_hits: true },
        apply_on_stream_done: true,
      },
      { actions, hits_addend: { format: "%RESP(x-tokens-used)%" }, apply_on_stream_done: true },
    ]);
    expect(problems).toEqual([]);
  });

  it("reports what an older Envoy cannot do, with the version that can", () => {
    const refund = { ...askedOnce([byUser]), isRefund: true };
    expect(entries([refund], 37).problems).toEqual([["HG321", expect.stringContaining("1.38")]]);
    const late = { ...askedOnce([byUser]), when: "streamDone" as const };
    expect(entries([late], 32).problems).toEqual([["HG321", expect.stringContaining("1.33")]]);
    const query = askedOnce([{ kind: "query", parameter: "q", key: "q" }]);
    expect(entries([query], 32).problems).toEqual([["HG321", expect.stringContaining("1.33")]]);
    expect(entries([refund, late, query]).problems).toEqual([]);
  });
});

describe("filterDescriptors()", () => {
  it("leaves to ext_proc what it asks for", () => {
    const descriptors = [askedOnce([byUser])];
    expect(filterDescriptors(limited(descriptors).rateLimit)).toEqual(descriptors);
    expect(filterDescriptors(limited(descriptors, true).rateLimit)).toEqual([]);
    expect(filterDescriptors(undefined)).toEqual([]);
  });
});
