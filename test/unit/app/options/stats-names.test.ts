import { describe, expect, it } from "vitest";
import { statText, tagText } from "../../../../src/app/options/stats-names.js";

describe("statText()", () => {
  it.each([
    ["user", "user"],
    ["a:b|c", "a_b_c"],
    ["remote_address_10.1.2.3", "remote_address_10_1_2_3"],
    ["from_10.1.2.3_to_10.9.8.7", "from_10_1_2_3_to_10_9_8_7"],
    ["version_1.2.3", "version_1.2.3"],
    ["two\nlines\r\u0000\u2028end", "two_lines___end"],
  ])("writes %j as %j", (text, written) => {
    expect(statText(text)).toBe(written);
  });
});

describe("tagText()", () => {
  it("leaves colons, and takes what would end a tag", () => {
    expect(tagText("a:b,c|d#e f\ng")).toBe("a:b_c_d_e_f_g");
  });
});
