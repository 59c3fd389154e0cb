import { describe, expect, it } from "vitest";
import { createTokenReader, tokenCharsMax } from "../../../src/app/admin-oidc.js";
import { FakeClock } from "../../support/fake-clock.js";

describe("createTokenReader()", () => {
  it("looks at no token that is longer than tokens are", async () => {
    const choice = {
      issuer: "https://id.example",
      audience: "headgate",
      // Nobody answers there: what is looked at is unavailable.
      jwksUrl: new URL("http://127.0.0.1:1/"),
      groupsClaim: "groups",
    };
    const read = createTokenReader(choice, new FakeClock());
    const head = Buffer.from('{"alg":"ES256"}').toString("base64url");
    expect(await read(`${head}.e30.${"A".repeat(86)}`)).toEqual({ kind: "unavailable" });
    expect(await read(`${head}.e30.${"A".repeat(tokenCharsMax)}`)).toEqual({ kind: "invalid" });
    expect(await read("none")).toEqual({ kind: "invalid" });
  });
});
