import { describe, expect, it } from "vitest";
import {
  accessGrantsMax,
  mayAct,
  mayActSomewhere,
  parseAccessList,
  visibleDomains,
} from "../../../../src/core/base/access-list.js";

const digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

const nameProblem = 'a name has at most 256 characters, no colon, and is not "local"';

function problemsOf(text: string): readonly string[] {
  const parsed = parseAccessList(text);
  return parsed.kind === "problems" ? parsed.problems : [];
}

describe("parseAccessList()", () => {
  it("reads each kind of identity, roles, domains and names", () => {
    const parsed = parseAccessList(`# who may
operator  *            token-sha256:${digits.toUpperCase()}  deploy-bot # since May

reader    shop,search  certificate:spiffe://shop.example/dashboard
operator  shop         subject:alice@shop.example\talice\r
reader    *            group:engineers`);
    expect(parsed).toEqual({
      kind: "list",
      grants: [
        {
          role: "operator",
          domains: undefined,
          identity: { kind: "token", sha256: digits },
          name: "deploy-bot",
        },
        {
          role: "reader",
          domains: ["shop", "search"],
          identity: { kind: "certificate", name: "spiffe://shop.example/dashboard" },
          name: undefined,
        },
        {
          role: "operator",
          domains: ["shop"],
          identity: { kind: "subject", value: "alice@shop.example" },
          name: "alice",
        },
        {
          role: "reader",
          domains: undefined,
          identity: { kind: "group", value: "engineers" },
          name: undefined,
        },
      ],
    });
  });

  it.each([
    ["admin * group:a", "must start with reader or operator"],
    ["reader *", "domains and an identity must follow the role"],
    ["reader shop,, group:a", "domains must be complete names separated by commas, or * for all"],
    ["reader sh* group:a", "domains must be complete names separated by commas, or * for all"],
    [
      "reader * token-sha256:secret x",
      "a token must be given as its SHA-256, 64 hexadecimal digits",
    ],
    [`reader * token-sha256:${digits}`, "a name must follow the token"],
    [`reader * token-sha256:${digits} # no name`, "a name must follow the token"],
    [
      "reader * group:",
      "an identity must be token-sha256:, certificate:, subject: or group: and a value",
    ],
    [
      "reader * password:x",
      "an identity must be token-sha256:, certificate:, subject: or group: and a value",
    ],
    ["reader * group:a two words", "a name must not contain spaces"],
    [`reader * subject:a ${"x".repeat(257)}`, nameProblem],
    ["reader * subject:a \u001b[31m", nameProblem],
    ["reader * subject:a \u202ea", nameProblem],
    ["reader * subject:a certificate:b", nameProblem],
    ["reader * subject:a local", nameProblem],
  ])("refuses %j, and does not say it again", (line, problem) => {
    expect(problemsOf(`\n${line}`)).toEqual([`line 2: ${problem}`]);
  });

  it("takes no token whose digest has more digits than a SHA-256", () => {
    const problems = problemsOf(`reader * token-sha256:${digits}0 bot`);
    expect(problems).toEqual([expect.stringContaining("64 hexadecimal digits")]);
  });

  it("refuses a token that stands twice", () => {
    const line = `reader * token-sha256:${digits} x`;
    expect(problemsOf(`${line}\n${line}`)).toEqual([
      "line 2: this token is already on a line above",
    ]);
  });

  it("gives a name to one identity alone, in as many lines as it has", () => {
    const token = `operator * token-sha256:${digits} ann`;
    const taken = ["line 2: another identity above already has this name"];
    for (const other of ["subject:ann", "certificate:ann"]) {
      expect(problemsOf(`${token}\nreader * ${other} ann`)).toEqual(taken);
    }
    // A new token beside the old one, until all have it.
    const rotated = `${token}\noperator * token-sha256:${"0".repeat(64)} ann`;
    expect(parseAccessList(rotated).kind).toBe("list");
    const lines = "reader shop subject:ann ann\noperator pay subject:ann ann";
    expect(parseAccessList(lines).kind).toBe("list");
  });

  it("takes so many lines, and no more", () => {
    const lines = Array.from({ length: accessGrantsMax }, (_, i) => `reader * group:g${i}`);
    expect(parseAccessList(lines.join("\n")).kind).toBe("list");
    const more = [...lines, "reader * group:more"].join("\n");
    expect(problemsOf(more)[0]).toContain(`at most ${accessGrantsMax} lines may grant access`);
  });
});

describe("mayAct()", () => {
  const ann = {
    name: "ann",
    grants: [
      { role: "operator", domains: ["shop"] },
      { role: "reader", domains: ["search"] },
    ],
  } as const;
  const all = { name: "root", grants: [{ role: "operator", domains: undefined }] } as const;

  it.each([
    ["reader", "shop", true],
    ["operator", "shop", true],
    ["reader", "search", true],
    ["operator", "search", false],
    ["reader", "pay", false],
    ["reader", undefined, false],
  ] as const)("holds %s in %s: %s", (role, domain, may) => {
    expect(mayAct(ann, role, domain)).toBe(may);
  });

  it("lets who may everywhere do what belongs to no domain", () => {
    expect(mayAct(all, "operator", undefined)).toBe(true);
    expect(mayAct({ name: "x", grants: [] }, "reader", "shop")).toBe(false);
    expect(mayActSomewhere(ann, "operator")).toBe(true);
    expect(
      mayActSomewhere({ name: "x", grants: [{ role: "reader", domains: undefined }] }, "operator"),
    ).toBe(false);
    expect(
      mayActSomewhere({ name: "x", grants: [{ role: "reader", domains: ["shop"] }] }, "reader"),
    ).toBe(true);
    expect(visibleDomains(ann)).toEqual(["shop", "search"]);
    expect(visibleDomains(all)).toBeUndefined();
  });
});

describe("visibleDomains()", () => {
  it("are all of them with one grant of all, beside others", () => {
    const some = { role: "reader", domains: ["shop"] } as const;
    const all = { role: "operator", domains: undefined } as const;
    expect(visibleDomains({ name: "ann", grants: [some, all] })).toBeUndefined();
    expect(visibleDomains({ name: "ann", grants: [some] })).toEqual(["shop"]);
    expect(visibleDomains({ name: "ann", grants: [some, all] }, "operator")).toBeUndefined();
  });

  it("are those that an operator may change, for a reader too", () => {
    const grants = [{ role: "operator", domains: ["shop"] }] as const;
    expect(visibleDomains({ name: "ann", grants })).toEqual(["shop"]);
    expect(mayActSomewhere({ name: "ann", grants }, "reader")).toBe(true);
  });
});
