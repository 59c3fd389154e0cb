import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stripComments } from "../../../../src/policy/format/format-comments.js";
import { formatPolicy, formattedColumnsMax } from "../../../../src/policy/format/format-policy.js";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { propertyRuns } from "../../../support/seeds.js";

function format(text: string): string {
  const formatted = formatPolicy({ file: "a.yaml", text });
  if (formatted.kind === "problems") throw new Error(formatted.problems[0]?.message);
  return formatted.text;
}

/** What a policy says, without where; of a wrong one what is wrong with it. */
function meaningOf(text: string): unknown {
  const parsed = parsePolicy([{ file: "a.yaml", text }]);
  if (parsed.kind === "policy") {
    const warnings = parsed.warnings.problems.map(({ id, message }) => `${id} ${message}`).sort();
    return { ...parsed, places: undefined, warnings };
  }
  // Lines move, and some messages name them.
  return parsed.problems.map(({ id, message }) => `${id} ${message.replace(/\d+$/, "n")}`).sort();
}

function commentsOf(text: string): readonly string[] {
  const { comments } = stripComments(text);
  return comments.flatMap((comment) => comment.text.split(";")).sort();
}

const root = fileURLToPath(new URL("../../../golden/policy", import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".yaml"))
  .flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    const made = formatPolicy({ file, text });
    return made.kind === "formatted" ? [{ file, text, once: made.text }] : [];
  });

const policy = (spec: string) =>
  `apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:\n${spec}`;

describe("formatPolicy()", () => {
  it.each(files)(
    "changes nothing of what $file says, and nothing when it is done",
    ({ text, once }) => {
      expect(meaningOf(once)).toEqual(meaningOf(text));
      expect(commentsOf(once)).toEqual(commentsOf(text));
      expect(format(once)).toBe(once);
    },
  );

  it("puts names in the order of the language, each with its comments", () => {
    const text = `spec:
  services:
    # the first
    - upstream: {port: 8080, address: a}   # where it is
      # what it is called
      name: a
      unknown: 1
kind: Policy
`;
    expect(format(text)).toBe(`kind: Policy
spec:
  services:
    # the first
    # what it is called
    - name: a
      upstream: {address: a, port: 8080} # where it is
      unknown: 1
`);
  });

  it("orders maps below names that are the user's own, and leaves those as they are", () => {
    const texts = "{sv: {leave: a, waiting: b}, de: {full: c, waiting: d}}";
    const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: a}
spec:
  waitingRooms: [{name: a, service: b, page: {texts: ${texts}}}]
`;
    const ordered = "{sv: {waiting: b, leave: a}, de: {waiting: d, full: c}}";
    expect(format(text)).toContain(`page: {texts: ${ordered}}`);
  });

  it("gives lines of its own to what does not fit, and to what holds comments", () => {
    const names = Array.from({ length: 12 }, (_, i) => `host-${i}.example`).join(", ");
    const text = policy(
      `  services: [{name: a, hosts: [${names}]}, {name: b, # two\n    hosts: [b]}] # all\n`,
    );
    const lines = format(text).split("\n");
    expect(lines).toContain("        - host-11.example");
    expect(lines).toContain("    - name: b # two");
    expect(lines).toContain("  # all");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(formattedColumnsMax);
  });

  it("keeps comments where they are said: before, behind, between and after", () => {
    const text = `# of the file

# before the domain
domain: a
descriptors: # of the list
  - key: a # behind

  # before b
  - key: b
    # at the end of b
  # at the end of the list
# at the end
`;
    expect(format(text)).toBe(`# of the file

# before the domain
domain: a
# of the list
descriptors:
  - key: a # behind

  # before b
  - key: b
    # at the end of b
  # at the end of the list

# at the end
`);
  });

  it("keeps numbers, durations and texts as they are written", () => {
    const text = `domain: "a"
descriptors:
  - key: 'b'
    value: 007
  - key: c
    value: 0x10
    rate_limit: {unit: day, requests_per_unit: 100}
  - key: d
    value:
`;
    expect(format(text)).toBe(text);
  });

  it("leaves names where they are in a file with aliases", () => {
    const text = `descriptors:
  - rate_limit: &day {unit: day, requests_per_unit: 5}
    key: a
  - key: b
    rate_limit: *day
domain: a
`;
    expect(format(text)).toBe(text);
  });

  it("leaves alone what is empty, and tells what is no YAML", () => {
    expect(format("# nothing\n")).toBe("# nothing\n");
    expect(formatPolicy({ file: "a.yaml", text: "a: [" })).toMatchObject({
      kind: "problems",
      problems: [{ id: "HG101" }],
    });
  });

  it("changes nothing of what is said by any order, style and comments", () => {
    const name = fc.constantFrom("name", "upstream", "timeouts", "retries", "hosts", "direction");
    const value: Record<string, string> = {
      name: "a",
      upstream: "{port: 80, address: a}",
      timeouts: "{request: 1s}",
      retries: "{numRetries: 2, retryOn: [reset, 5xx]}",
      hosts: "[a.example, b.example]",
      direction: "outbound",
    };
    const comment = fc.constantFrom(
      "",
      " # behind",
      "\n      # deep",
      "\n# left",
      "\n\n    # some",
    );
    const entry = fc.tuple(name, comment);
    const entries = fc.uniqueArray(entry, { selector: ([each]) => each, minLength: 1 });
    fc.assert(
      fc.property(fc.array(entries, { minLength: 1, maxLength: 4 }), (services) => {
        const items = services.map((fields) => {
          const lines = fields.map(([each, after]) => `${each}: ${value[each]}${after}`);
          return `    - ${lines.join("\n      ")}\n`;
        });
        const text = policy(`  services:\n${items.join("")}`);
        const once = format(text);
        expect(meaningOf(once)).toEqual(meaningOf(text));
        expect(commentsOf(once)).toEqual(commentsOf(text));
        expect(format(once)).toBe(once);
      }),
      propertyRuns(40),
    );
  });
});
