import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Credentials, openAdminAccess } from "../../../../src/app/access/admin-access.js";
import { silentLogger } from "../../../../src/app/base/logger.js";
import type { AdminChoice } from "../../../../src/app/config/admin-choice.js";
import { accessNameCharsMax } from "../../../../src/core/base/access-list.js";
import { startIdentityProvider } from "../../../support/identity-provider.js";
import { realClock } from "../../../support/real-clock.js";
import { useStage } from "../../../support/stage.js";

const stage = useStage("test");
const token = "0123456789abcdef";
const sha256 = createHash("sha256").update(token).digest("hex");
const issuers = ["https://id.example", "https://other.example"] as const;

/** What callers are called under an access list: by their tokens, claims and certificates. */
async function open(list: string) {
  const accessPath = join(stage.folder, "access");
  await writeFile(accessPath, list);
  const provider = await startIdentityProvider(stage);
  const jwksUrl = new URL(provider.jwksUrl);
  const nameOf = async (credentials: Partial<Credentials>, issuer: string = issuers[0]) => {
    const oidc = { issuer, audience: "headgate", jwksUrl, groupsClaim: "groups" };
    const choice = { accessPath, isOpen: false, oidc } as AdminChoice;
    const access = await openAdminAccess({ choice, clock: realClock, logger: silentLogger });
    const none = { authorization: undefined, certificateNames: [] };
    const known = await access.authenticate({ ...none, ...credentials });
    access.close();
    return known.kind === "principal" ? known.principal.name : known.kind;
  };
  return {
    byToken: () => nameOf({ authorization: `Bearer ${token}` }),
    byCertificate: (...certificateNames: string[]) => nameOf({ certificateNames }),
    bySubject: async (sub: string, issuer: string = issuers[0]) => {
      const jwt = await provider.sign({ groups: ["all"] }, { sub, issuer });
      return nameOf({ authorization: `Bearer ${jwt}` }, issuer);
    },
  };
}

const everybody = "reader * group:all\n";

describe("the name of a principal", () => {
  it("says of what kind they are, and of which issuer", async () => {
    const lines = `reader * token-sha256:${sha256} ann\nreader * certificate:ann\n`;
    const { byToken, byCertificate, bySubject } = await open(lines + everybody);
    expect(await byToken()).toBe("ann");
    expect(await byCertificate("ann")).toBe("certificate:ann");
    expect(await bySubject("ann")).toBe("subject:https://id.example#ann");
    expect(await bySubject("ann", issuers[1])).toBe("subject:https://other.example#ann");
    const odd = "certificate:ann";
    expect(await bySubject(odd)).toBe(`subject:https://id.example#${odd}`);
  });

  it("is the list's for who has one there, and for nobody else", async () => {
    const { bySubject } = await open(`reader * subject:ann ben\n${everybody}`);
    expect(await bySubject("ann")).toBe("ben");
    expect(await bySubject("ben")).toBe("subject:https://id.example#ben");
  });

  it("is of all names of a certificate that give something: some may be shared", async () => {
    const lines = ["common", "ann", "ben"].map((name) => `reader * certificate:${name}\n`);
    const { byCertificate } = await open(`${lines.join("")}reader * certificate:cy cyrus\n`);
    expect(await byCertificate("first", "ann")).toBe("certificate:ann");
    expect(await byCertificate("common", "ann")).toBe("certificate:common certificate:ann");
    expect(await byCertificate("common", "ben")).toBe("certificate:common certificate:ben");
    expect(await byCertificate("first", "cy", "ann")).toBe("cyrus certificate:ann");
    expect(await byCertificate("first")).toBe("unknown");
  });

  it("tells long ones apart that begin alike", async () => {
    const long = `spiffe://shop/${"x".repeat(accessNameCharsMax)}`;
    const uris = [`${long}/ann`, `${long}/ben`] as const;
    const lines = uris.map((uri) => `reader * certificate:${uri}\n`).join("");
    const { byCertificate, bySubject } = await open(lines + everybody);
    const names = [await byCertificate(uris[0]), await byCertificate(uris[1])];
    expect(names[0]).not.toBe(names[1]);
    expect(names.map((name) => name.length)).toEqual([accessNameCharsMax, accessNameCharsMax]);
    // One that is written as a shortened one is shortened itself.
    const subjects = ["y".repeat(255), "y".repeat(254)] as const;
    const shown = await bySubject(subjects[0]);
    const forged = shown.slice("subject:https://id.example#".length);
    const found = [shown, await bySubject(subjects[1]), await bySubject(forged)];
    expect(new Set(found).size).toBe(3);
  });

  it.each([
    ["a control character", "ann\u001b[2J"],
    ["a line's end", "ann\nroot"],
    ["a character that turns text around", "ann\u202etoor"],
    ["one without a width", "an\u200bn"],
    ["a letter that looks like another", "\u0430nn"],
    ["a blank at its end", "ann "],
    ["two blanks", "ann  root"],
    ["too many characters", "a".repeat(256)],
    ["none at all", ""],
  ])("is nobody's whose subject has %s", async (_, sub) => {
    const { bySubject } = await open(everybody);
    expect(await bySubject(sub)).toBe("unknown");
  });

  it("takes a subject of printable ASCII", async () => {
    const { bySubject } = await open(everybody);
    const name = "subject:https://id.example#auth0|Ann Smith";
    expect(await bySubject("auth0|Ann Smith")).toBe(name);
  });
});
