import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  RateLimitConfigSchema,
  type RateLimitDescriptorSchema,
  RateLimitUnit,
} from "../../../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { rulesMax } from "../../../../src/policy/limits/rule-list.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { fileCharsMax } from "../../../../src/policy/policy-size.js";
import {
  type DiscoveredResource,
  readRateLimitConfigs,
  resourcesMax,
  rateLimitConfigTypeUrl as typeUrl,
} from "../../../../src/rpc/policy-xds/rate-limit-config.js";

type Config = MessageInitShape<typeof RateLimitConfigSchema>;
type Descriptor = MessageInitShape<typeof RateLimitDescriptorSchema>;

function resource(config: Config): DiscoveredResource {
  const value = toBinary(RateLimitConfigSchema, create(RateLimitConfigSchema, config));
  return { typeUrl, value };
}

/** The texts of these configurations. */
function texts(...configs: readonly Config[]) {
  const read = readRateLimitConfigs(configs.map(resource));
  if (read.kind !== "texts") throw new Error(read.message);
  return read.sources;
}

/** The text of one descriptor. */
function textOf(descriptor: Descriptor): string | undefined {
  return texts({ name: "n", domain: "d", descriptors: [descriptor] })[0]?.text;
}

const minute = { unit: RateLimitUnit.MINUTE, requestsPerUnit: 5 };

describe("readRateLimitConfigs()", () => {
  it("writes what a control plane sends as YAML that the policy's parser takes", () => {
    const sources = texts({
      name: "default/eg/http",
      domain: "default/eg/http",
      descriptors: [
        {
          key: "httproute/default/shop/rule/0",
          value: "httproute/default/shop/rule/0",
          descriptors: [
            { key: "rule-0-match-0", value: "rule-0-match-0", rateLimit: minute },
            { key: "rule-1-match-0", rateLimit: minute, shadowMode: true },
          ],
        },
      ],
    });
    expect(sources).toEqual([
      {
        file: "default/eg/http",
        text: `domain: "default/eg/http"
descriptors:
- key: "httproute/default/shop/rule/0"
  value: "httproute/default/shop/rule/0"
  descriptors:
  - key: "rule-0-match-0"
    value: "rule-0-match-0"
    rate_limit: {unit: "MINUTE", requests_per_unit: 5}
  - key: "rule-1-match-0"
    rate_limit: {unit: "MINUTE", requests_per_unit: 5}
    shadow_mode: true
`,
      },
    ]);
    expect(parsePolicy(sources)).toMatchObject({
      kind: "policy",
      domains: ["default/eg/http"],
      rules: [
        { effect: { kind: "none" } },
        { effect: { limits: [{ hits: 5, unit: "minute" }] } },
        { effect: { kind: "limited" } },
      ],
    });
  });

  it.each([
    ["second", RateLimitUnit.SECOND],
    ["minute", RateLimitUnit.MINUTE],
    ["hour", RateLimitUnit.HOUR],
    ["day", RateLimitUnit.DAY],
    ["week", RateLimitUnit.WEEK],
    ["month", RateLimitUnit.MONTH],
    ["year", RateLimitUnit.YEAR],
  ])("knows the unit %s", (name, unit) => {
    const limits = { rateLimit: { unit, requestsPerUnit: 7 }, key: "k" };
    expect(parsePolicy(texts({ domain: "d", descriptors: [limits] }))).toMatchObject({
      rules: [{ effect: { limits: [{ hits: 7, unit: name }] } }],
    });
  });

  it("keeps a limit of zero: it blocks", () => {
    const text = textOf({ key: "k", rateLimit: { unit: RateLimitUnit.DAY } });
    expect(text).toContain(`rate_limit: {unit: "DAY", requests_per_unit: 0}`);
  });

  it.each([
    ["no unit", { requestsPerUnit: 5 }, '"UNKNOWN" is not a unit'],
    ["a unit of the future", { unit: 99, requestsPerUnit: 5 }, '"99" is not a unit'],
    ["an unlimited one with a unit", { unlimited: true, unit: RateLimitUnit.HOUR }, "exclude"],
  ])("hands a limit with %s to the parser to refuse", (_what, rateLimit, message) => {
    const parsed = parsePolicy(texts({ domain: "d", descriptors: [{ key: "k", rateLimit }] }));
    expect(parsed).toMatchObject({ problems: [{ message: expect.stringContaining(message) }] });
  });

  it("takes no notice of a number beside unlimited, as envoyproxy/ratelimit", () => {
    const rateLimit = { unlimited: true, requestsPerUnit: 5, name: "free" };
    expect(textOf({ key: "k", rateLimit })).toContain(`{name: "free", unlimited: true}`);
  });

  it("writes replaces, quota mode, detailed metrics and metadata", () => {
    const text = textOf({
      key: "k",
      quotaMode: true,
      detailedMetric: true,
      metadata: { team: "shop", weight: 0.25, tags: ["a", null], deep: { on: true } },
      rateLimit: { ...minute, replaces: [{ name: "old" }, { name: "" }] },
    });
    expect(text).toContain(`replaces: [{name: "old"}, {name: ""}]}`);
    expect(text).toContain("quota_mode: true\n  detailed_metric: true\n");
    const metadata = `{"team":"shop","weight":0.25,"tags":["a",null],"deep":{"on":true}}`;
    expect(text).toContain(`  metadata: ${metadata}\n`);
  });

  it("leaves an empty value, empty metadata and an absent limit out", () => {
    expect(textOf({ key: "k", value: "", metadata: {} })).toBe(
      `domain: "d"\ndescriptors:\n- key: "k"\n`,
    );
  });

  it("lets nothing in a text act as YAML", () => {
    const key = '": {x}\n- \u0085\ufeff\u007f#\\ \u{1f600}*';
    const [source] = texts({ domain: "d", descriptors: [{ key: "k", value: key }] });
    expect(source?.text).toContain("\\u0085\\ufeff\\u007f");
    expect(source?.text.split("\n")).toHaveLength(5);
    expect(parsePolicy(source === undefined ? [] : [source])).toMatchObject({
      problems: [{ id: "HG132", line: 4 }],
    });
  });

  it("calls texts by name, by domain without one, and tells the same name apart", () => {
    const files = texts(
      { domain: "b" },
      { name: "a", domain: "y" },
      { name: "a", domain: "x" },
      {},
    );
    expect(files.map(({ file }) => file)).toEqual(["unnamed", "b", "a", "a#2"]);
    expect(files[2]?.text).toBe(`domain: "x"\n`);
  });

  it("writes the same for the same set in any order", () => {
    const configs = ["c", "a", "b"].map((name) => ({ name, domain: name }));
    expect(texts(...configs.toReversed())).toEqual(texts(...configs));
  });

  it("answers an empty set with no texts", () => {
    expect(readRateLimitConfigs([])).toEqual({ kind: "texts", sources: [] });
  });

  it.each([
    ["garbage", new Uint8Array([0xff, 0xff, 0xff])],
    ["half a message", resource({ domain: "domain" }).value.subarray(0, 4)],
    ["levels without end", nested(200)],
  ])("refuses %s", (_what, value) => {
    const read = readRateLimitConfigs([resource({ domain: "d" }), { typeUrl, value }]);
    expect(read).toEqual({ kind: "unreadable", message: "resource 2 cannot be decoded" });
  });

  it("keeps every number and text of metadata as it is", () => {
    const metadata = {
      numbers: [0.1, -0.5, 1e-9, 1e21, 2 ** 53, -(2 ** 60), 1.797e308, 5e-324, 4_294_967_296],
      texts: ["yes", "0x10", "1e3", "~", "", "<<", "\u0085"],
      "<<": { off: true, none: null, "01": [] },
    };
    const parsed = parsePolicy(
      texts({ domain: "d", descriptors: [{ key: "k", metadata, rateLimit: minute }] }),
    );
    expect(parsed).toMatchObject({ rules: [{ metadata }] });
  });

  it("writes a number in metadata that JSON cannot have as its name", () => {
    // metadata {fields {key: "n" value {number_value: NaN}}}
    const nan = [0x11, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f];
    const entry = [0x0a, 1, 0x6e, 0x12, nan.length, ...nan];
    const struct = [0x0a, entry.length, ...entry];
    const descriptor = [0x0a, 1, 0x6b, 0x42, struct.length, ...struct];
    const value = new Uint8Array([0x1a, descriptor.length, ...descriptor]);
    const read = readRateLimitConfigs([{ typeUrl, value }]);
    const text = `domain: ""\ndescriptors:\n- key: "k"\n  metadata: {"n":"NaN"}\n`;
    expect(read).toMatchObject({ sources: [{ text }] });
  });

  it("refuses a set that holds another type, instead of forgetting a part of it", () => {
    const read = readRateLimitConfigs([
      { typeUrl: "type.googleapis.com/x.Y\n", value: new Uint8Array() },
    ]);
    expect(read).toMatchObject({
      message: "resource 1 is a type.googleapis.com/x.Y\ufffd, not a RateLimitConfig",
    });
  });

  it(`takes ${resourcesMax} resources and refuses one more`, () => {
    const many = Array.from({ length: resourcesMax }, () => ({ typeUrl, value: new Uint8Array() }));
    expect(readRateLimitConfigs(many).kind).toBe("texts");
    expect(readRateLimitConfigs([...many, { typeUrl, value: new Uint8Array() }])).toMatchObject({
      message: `there are more than ${resourcesMax} resources`,
    });
  });

  it("refuses more descriptors and limits than a policy may hold, over all resources", () => {
    const partsMax = 2 * rulesMax + resourcesMax;
    // Each with a limit, which is a part, too.
    const limited = Buffer.alloc((partsMax / 2) * 4, Buffer.of(0x1a, 2, 0x1a, 0));
    const one = Buffer.of(0x1a, 0);
    const read = (...values: readonly Buffer[]) =>
      readRateLimitConfigs(values.map((value) => ({ typeUrl, value })));
    expect(read(limited).kind).toBe("texts");
    expect(read(limited, one)).toMatchObject({
      message: `the resources hold more than ${partsMax} descriptors and limits`,
    });
  });

  it("stops to write where the parser refuses to read", () => {
    // Two bytes each, and a line of dozens of characters.
    let descriptors: Descriptor[] = Array.from({ length: 150_000 }, () => ({}));
    for (let level = 0; level < 40; level += 1) descriptors = [{ key: "k", descriptors }];
    const [source] = texts({ domain: "d", descriptors });
    expect(source?.text.length).toBeGreaterThan(fileCharsMax);
    expect(source?.text.length).toBeLessThan(fileCharsMax + 1_000);
    expect(parsePolicy(source === undefined ? [] : [source])).toMatchObject({
      problems: [{ id: "HG107" }],
    });
  });
});

/** A configuration whose descriptors stand in one another. */
function nested(depth: number): Uint8Array {
  let bytes = Buffer.alloc(0);
  for (let level = 0; level < depth; level += 1) {
    const size = bytes.length;
    const length = size < 0x80 ? [size] : [(size & 0x7f) | 0x80, size >> 7];
    // Field 4 of a descriptor; at the top, field 3 of the configuration.
    bytes = Buffer.concat([Buffer.from([level === depth - 1 ? 0x1a : 0x22, ...length]), bytes]);
  }
  return bytes;
}
