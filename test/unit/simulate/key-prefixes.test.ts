import { describe, expect, it } from "vitest";
import { plainTextEnd, plainWordEnd } from "../../../src/simulate/json-scan.js";
import {
  type JsonLead,
  JsonLeads,
  missedLeadsMax,
  orderedLeadsMax,
} from "../../../src/simulate/key-prefixes.js";
import { logLine } from "../../support/log-line.js";

/** All leads of a line that is plain. */
function leadsOf(leads: JsonLeads, said: string): readonly JsonLead[] {
  const line = logLine(said);
  const found: JsonLead[] = [];
  leads.begin();
  let at = line.start;
  while (at < line.end - 1) {
    const lead = leads.next(line, at);
    if (lead === undefined) throw new Error(`no lead at ${at - line.start} of ${said}`);
    found.push(lead);
    const start = at + lead.size;
    at = lead.isOfText ? plainTextEnd(line, start) + 1 : plainWordEnd(line, start);
  }
  return found;
}

function keysOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `key-${i}`);
}

function lineOf(keys: readonly string[]): string {
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, "value"])));
}

describe("JsonLeads", () => {
  it("tells whose key it is, and whether a text follows", () => {
    const found = leadsOf(new JsonLeads(["a", "b"]), '{"b":"x", "c": 1 ,"a":null}');
    expect(found.map(({ place, isOfText, size }) => ({ place, isOfText, size }))).toEqual([
      { place: 1, isOfText: true, size: 6 },
      { place: undefined, isOfText: false, size: 7 },
      { place: 0, isOfText: false, size: 6 },
    ]);
  });

  it("finds leads again, also where others are left out, or were before", () => {
    const leads = new JsonLeads([]);
    const [a, b, d] = leadsOf(leads, '{"a":"1","b":"2","d":"4"}');
    const [, , c] = leadsOf(leads, '{"a":"","b":"","c":"","d":""}');
    expect(leadsOf(leads, '{"a":"1","b":"2","c":"3","d":"4"}')).toEqual([a, b, c, d]);
    const [first, last] = leadsOf(leads, '{"a":"5","d":"6"}');
    expect(first).toBe(a);
    expect(last).toBe(d);
    expect(leads.size).toBe(4);
  });

  it("knows a text from a number behind the same key", () => {
    const leads = new JsonLeads([]);
    for (const value of ['"x"', "1", '"x"', "1"]) {
      const [lead] = leadsOf(leads, `{"a":${value}}`);
      expect(lead?.isOfText, value).toBe(value === '"x"');
    }
    expect(leads.size).toBe(2);
  });

  it("looks past so many that are left out, and no further", () => {
    for (const [leftOut, isFound] of [
      [missedLeadsMax - 1, true],
      [missedLeadsMax, false],
    ] as const) {
      const leads = new JsonLeads([]);
      const keys = keysOf(leftOut + 2);
      const last = leadsOf(leads, lineOf(keys)).at(-1);
      const found = leadsOf(leads, lineOf([...keys.slice(0, 1), ...keys.slice(-1)])).at(-1);
      expect(found === last, `${leftOut}`).toBe(isFound);
    }
  });

  it("remembers so many, and then begins anew", () => {
    const leads = new JsonLeads([]);
    leadsOf(leads, lineOf(keysOf(orderedLeadsMax)));
    expect(leads.size).toBe(orderedLeadsMax);
    leadsOf(leads, lineOf(keysOf(orderedLeadsMax + 1)));
    expect(leads.size).toBe(1);
    leadsOf(leads, lineOf(keysOf(orderedLeadsMax + 1)));
    expect(leads.size).toBeLessThanOrEqual(orderedLeadsMax);
  });
});
