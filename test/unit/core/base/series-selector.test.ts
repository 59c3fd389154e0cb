import { describe, expect, it } from "vitest";
import {
  labelMatchersMax,
  parseSeriesSelector,
  selects,
} from "../../../../src/core/base/series-selector.js";

describe("parseSeriesSelector()", () => {
  it.each([
    { text: "up", labels: [] },
    { text: "up{}", labels: [] },
    { text: 'a:b_c{x="1"}', labels: [["x", "1", true]] },
    {
      text: 'up{ x = "1" , y != "2", }',
      labels: [
        ["x", "1", true],
        ["y", "2", false],
      ],
    },
    { text: String.raw`up{x="a\"b\\c\nd,}"}`, labels: [["x", 'a"b\\c\nd,}', true]] },
  ])("reads $text", ({ text, labels }) => {
    const matchers = labels.map(([label, value, isEqual]) => ({ label, value, isEqual }));
    expect(parseSeriesSelector(text)).toEqual({ metric: /^[^{]+/.exec(text)?.[0], matchers });
  });

  it.each([
    "",
    '{x="1"}',
    "1up",
    "up{x=1}",
    'up{x=~"1"}',
    'up{x="1"',
    'up{x="1"} offset 5m',
    'up{x="1" y="2"}',
    "sum(up)",
    String.raw`up{x="\d"}`,
  ])("refuses %s", (text) => {
    expect(parseSeriesSelector(text)).toBeUndefined();
  });

  it("takes as many matchers as it may", () => {
    const of = (count: number) =>
      `up{${Array.from({ length: count }, (_, i) => `l${i}="1"`).join()}}`;
    expect(parseSeriesSelector(of(labelMatchersMax))?.matchers).toHaveLength(labelMatchersMax);
    expect(parseSeriesSelector(of(labelMatchersMax + 1))).toBeUndefined();
  });
});

describe("selects()", () => {
  it.each([
    { text: "up", isMeant: true },
    { text: 'up{group="a"}', isMeant: true },
    { text: 'up{group="b"}', isMeant: false },
    { text: 'up{group!="b",topic="t"}', isMeant: true },
    { text: 'up{group="a",topic!="t"}', isMeant: false },
    { text: 'up{other=""}', isMeant: true },
    { text: 'up{other!=""}', isMeant: false },
  ])("says $isMeant for $text", ({ text, isMeant }) => {
    const selector = parseSeriesSelector(text);
    const labels = new Map([
      ["group", "a"],
      ["topic", "t"],
    ]);
    expect(selector && selects(selector, labels)).toBe(isMeant);
  });
});
