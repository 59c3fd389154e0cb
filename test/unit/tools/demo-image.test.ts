import { describe, expect, it } from "vitest";
import { drawTerminal } from "../../../tools/demo-image.js";

const esc = String.fromCharCode(27);

describe("drawTerminal()", () => {
  it("draws each part of a line in its color, and marks as text", () => {
    const drawn = drawTerminal(`\n${esc}[32m2 ok${esc}[0m <a> & ${esc}[1mbold${esc}[0m\n\n`);
    expect(drawn).toContain('<tspan fill="#56d364">2 ok</tspan>');
    expect(drawn).toContain("<tspan> &lt;a&gt; &amp; </tspan>");
    expect(drawn).toContain('<tspan font-weight="bold">bold</tspan>');
    expect(drawn).not.toContain(esc);
  });

  it("cuts what does not fit", () => {
    const drawn = drawTerminal(`${"x".repeat(150)}\n`.repeat(50));
    expect(drawn.match(/xml:space/g)).toHaveLength(32);
    expect(drawn).toContain(`>${"x".repeat(100)}<`);
  });
});
