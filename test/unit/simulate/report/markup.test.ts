import { expect, it } from "vitest";
import { element, tableOf, writeHtml } from "../../../../src/simulate/report/markup.js";

it("writes texts and attributes so that nothing in them acts", () => {
  const hostile = `"><script>alert('1')</script>&`;
  const html = writeHtml([
    element("p", { title: hostile }, [hostile]),
    tableOf({ label: hostile, titles: [hostile], rows: [[hostile]] }),
  ]);
  expect(html).not.toContain("<script");
  expect(
    html.match(/&quot;&gt;&lt;script&gt;alert\(&#39;1&#39;\)&lt;\/script&gt;&amp;/g),
  ).toHaveLength(5);
});

it("writes places of drawings to a tenth", () => {
  expect(writeHtml([element("line", { x1: 1 / 3, x2: 20 })])).toBe(
    '\n<line x1="0.3" x2="20"></line>',
  );
});
