import { describe, expect, it } from "vitest";
import {
  type Mogrifier,
  mogrify,
  parseMogrifier,
} from "../../../../src/app/config/statsd-mogrifier.js";

function mogrifier(pattern: string, name: string, tags: Mogrifier["tags"] = []): Mogrifier {
  const parsed = parseMogrifier({ pattern, name });
  if (parsed.kind === "problem") throw new Error(parsed.message);
  return { ...parsed.value, tags };
}

const name = "ratelimit.service.rate_limit.shop.plan_free.total_hits";
const byDomain = mogrifier(
  "^ratelimit\\.service\\.rate_limit\\.(.*)\\.(.*)\\.(.*)$",
  "ratelimit.service.rate_limit.$3",
  [
    { name: "domain", value: "$1" },
    { name: "descriptor", value: "$2" },
  ],
);

describe("mogrify()", () => {
  it("makes name and tags of what the groups found", () => {
    expect(mogrify(name, [byDomain])).toEqual({
      name: "ratelimit.service.rate_limit.total_hits",
      tags: [
        { name: "domain", value: "shop" },
        { name: "descriptor", value: "plan_free" },
      ],
    });
  });

  it("leaves a name that nothing matches", () => {
    expect(mogrify("other", [byDomain])).toEqual({ name: "other", tags: [] });
    expect(mogrify("other", [])).toEqual({ name: "other", tags: [] });
  });

  it("applies the first that matches, and no other", () => {
    const first = mogrifier("rate_limit", "first");
    expect(mogrify(name, [first, byDomain]).name).toBe("first");
  });

  it("leaves a group that the pattern does not have, and empties one that met nothing", () => {
    const rule = mogrifier("^(a)|(b)$", "$0-$1-$2-$5");
    expect(mogrify("a", [rule]).name).toBe("a-a--$5");
  });

  it("lets nothing into name or tag that would end the line", () => {
    const rule = mogrifier("^(.*)$", "x|$1", [{ name: "t", value: "a,$1" }]);
    expect(mogrify("b", [rule])).toEqual({ name: "x_b", tags: [{ name: "t", value: "a_b" }] });
  });
});

describe("parseMogrifier()", () => {
  it("takes named groups as Go writes them", () => {
    expect(mogrify("ab", [mogrifier("(?P<first>a)b", "$1")]).name).toBe("a");
  });

  it.each([
    [{ pattern: "", name: "a" }, "PATTERN", "is missing"],
    [{ pattern: "a", name: "" }, "NAME", "is missing"],
    [{ pattern: "(secret", name: "a" }, "PATTERN", "is not a valid ECMAScript regular expression"],
  ])("refuses %j", (texts, part, words) => {
    const parsed = parseMogrifier(texts);
    expect(parsed).toMatchObject({ kind: "problem", part });
    expect(JSON.stringify(parsed)).toContain(words);
    expect(JSON.stringify(parsed)).not.toContain("secret");
  });
});
