import { describe, expect, it } from "vitest";
import { nameRule } from "../../../../src/policy/text/text-rules.js";

const characters = Array.from({ length: 0x180 }, (_, code) => String.fromCharCode(code));
const accepted = characters.filter((character) => !nameRule.forbidden.test(character));

describe("nameRule", () => {
  it("takes most of what people write", () => {
    expect(accepted.join("")).toBe(
      " !#$%&'()*+-./0123456789:<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{}~",
    );
  });

  it.each(accepted)("keeps %o in x-ratelimit-limit, as Envoy writes it, one part", (character) => {
    const name = `a${character}b`;
    const header = `10, 10;w=60;name="${name}", 20;w=1;name="other"`;
    const policies = header.split(", ").flatMap((part) => part.split(","));
    expect(policies).toHaveLength(3);
    const [hits, seconds, quoted, ...others] = policies[1]?.split(";") ?? [];
    expect([hits, seconds, others]).toEqual(["10", "w=60", []]);
    // A string of RFC 9651: no quote, no backslash, printable.
    expect(/^name="([ !#-[\]-~]*)"$/.exec(quoted ?? "")?.[1]).toBe(name);
  });

  it.each(accepted)("keeps %o in a StatsD line one tag", (character) => {
    const line = `requests:1|c|#limit:a${character}b`;
    expect(line.split(/[|,\n]/)).toHaveLength(3);
  });
});
