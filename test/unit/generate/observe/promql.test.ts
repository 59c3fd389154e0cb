import { describe, expect, it } from "vitest";
import {
  clustersNamed,
  literalPattern,
  quoted,
  series,
} from "../../../../src/generate/observe/promql.js";
import { readQuery } from "../../../support/promql.js";

describe("quoted()", () => {
  it.each([
    { text: "plain", written: '"plain"' },
    { text: 'a"b\\c', written: String.raw`"a\"b\\c"` },
    { text: "$job [[x]]", written: String.raw`"\x24job \x5b[x]]"` },
    { text: "two\nlines", written: String.raw`"two\nlines"` },
  ])("writes $text so that neither PromQL nor Grafana reads more into it", (row) => {
    expect(quoted(row.text)).toBe(row.written);
    expect(readQuery(`up{job=${row.written}}`).isRight).toBe(true);
  });
});

describe("series()", () => {
  it("takes a text, or any of several", () => {
    expect(series("up")).toBe("up");
    expect(series("up", { job: "a", host: ["b.c", "d|e"] })).toBe(
      'up{job="a",host=~"b[.]c|d[|]e"}',
    );
  });

  it("takes the clusters of all rules of an HTTPRoute for those of any", () => {
    // Alerts and panels looked at the first rule's cluster alone.
    const names = ["orders", "httproute/shop/orders/rule/0", "httproute/shop/orders/rule/1"];
    const rules = '"orders|httproute/shop/orders/rule/[0-9]+|"';
    const matchers = `envoy_cluster_name=~${rules},cluster_name=~${rules}`;
    expect(series("up", clustersNamed(names))).toBe(`up{${matchers}}`);
  });
});

describe("literalPattern()", () => {
  it("means the text alone, also without a backslash", () => {
    const text = "outbound|8080||a.b (c)+[d]{2}$";
    const pattern = literalPattern(text);
    expect(pattern).not.toContain("\\");
    // JavaScript has no `[]]`, which Go reads as `]`.
    expect(new RegExp(`^${pattern.replaceAll("[]]", "\\]")}$`).test(text)).toBe(true);
  });
});
