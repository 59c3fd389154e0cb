import { describe, expect, it } from "vitest";
import {
  pageFields,
  pageStates,
  pageTexts,
  templateParts,
} from "../../../../src/core/waiting-room/page-fields.js";

/** Texts as they are, and names in brackets. */
function reading(template: string): readonly string[] {
  return templateParts(template).map((part) =>
    part.kind === "text" ? part.text : `[${part.name}]`,
  );
}

describe("templateParts()", () => {
  it.each([
    ["", []],
    ["plain", ["plain"]],
    ["<p>{{ ahead }} ahead", ["<p>", "[ahead]", " ahead"]],
    ["{{a}}{{b}}", ["[a]", "[b]"]],
    ["{{}}", ["[]"]],
    ["{{a b}}", ["[a b]"]],
    // Of these a template engine would make something else, so a policy refuses them.
    ["{{{a}}}", ["[{a]", "}"]],
    ["{{{{a}}}}", ["[{{a]", "}}"]],
    ["{{#if a}}x{{/if}}", ["[#if a]", "x", "[/if]"]],
    ["a{b{c}}", ["a{b{c}}"]],
    ["{{a", ["{{a"]],
    ["{{a\n}}", ["{{a\n}}"]],
    ["a}} {{ b", ["a}} {{ b"]],
    ["@media{a{{b:1}}}", ["@media{a", "[b:1]", "}"]],
    ["{{å}} 𝒳 {{𝒳}}", ["[å]", " 𝒳 ", "[𝒳]"]],
  ])("divides %j into %j", (template, parts) => {
    expect(reading(template)).toEqual(parts);
  });

  it("says where a field stands, and loses nothing", () => {
    const template = "𝒳<b>{{ position }}</b>\n{{ahead}}!";
    const whole = templateParts(template).map((part) =>
      part.kind === "text" ? part.text : template.slice(part.start, part.end),
    );
    expect(whole.join("")).toBe(template);
    expect(whole).toContain("{{ position }}");
  });

  it("takes what is too long for a name as text", () => {
    const [long] = ["x".repeat(200)];
    expect(reading(`{{${long}}}`)).toEqual([`{{${long}}}`]);
  });

  /** Each brace was once the start of a search to the end: 400,000 of them took five minutes. */
  it("looks at each character a few times, whatever braces there are", () => {
    for (const piece of ["{{", "{{ ", "{{{ x", "}}", "{{a}", "{{a}} "]) {
      const template = piece.repeat(500_000);
      const fieldCount = templateParts(template).filter(({ kind }) => kind === "field").length;
      expect(fieldCount).toBe(piece === "{{a}} " ? 500_000 : 0);
    }
  });
});

describe("the fields and texts of a page", () => {
  it("have names that a template can hold, each once, with a word on each", () => {
    const names = [...Object.keys(pageFields), ...pageStates, ...Object.keys(pageTexts)];
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]*$/);
    for (const docs of [...Object.values(pageFields), ...Object.values(pageTexts)]) {
      expect(docs).toMatch(/^.{10,120}\.$/);
    }
  });

  it("have a title and a message for each state", () => {
    for (const state of pageStates) {
      expect(Object.keys(pageTexts)).toEqual(expect.arrayContaining([state, `${state}Title`]));
    }
  });
});
