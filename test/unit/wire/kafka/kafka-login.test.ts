import { describe, expect, it } from "vitest";
import {
  ScramExchange,
  scramIterationsMax,
  scramIterationsMin,
} from "../../../../src/wire/kafka/kafka-login.js";

/** Source: RFC 7677, section 3. */
const nonce = "rOprNGfwEbeRWgbNEkqO";
const both = `${nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0`;
const salt = "W22ZaJ0SNY7soEsUEjb6gQ==";
const challenge = `r=${both},s=${salt},i=4096`;
const signature = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

const exchange = (user = "user"): ScramExchange =>
  new ScramExchange({ hash: "sha256", user, password: "pencil", nonce });

describe("ScramExchange", () => {
  it("proves the password, and has the broker prove it", async () => {
    const scram = exchange();
    expect(scram.first).toBe(`n,,n=user,r=${nonce}`);
    expect(await scram.prove(challenge)).toBe(
      `c=biws,r=${both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=`,
    );
    expect(() => scram.verify(signature)).not.toThrow();
  });

  it("escapes a name", () => {
    expect(exchange("a=b,c").first).toBe(`n,,n=a=3Db=2Cc,r=${nonce}`);
  });

  it.each(["", "v=", "e=invalid-proof", signature.replace("6", "7"), "v=AAAA"])(
    "refuses a broker that answers %j",
    async (last) => {
      const scram = exchange();
      await scram.prove(challenge);
      expect(() => scram.verify(last)).toThrow(/does not know the password/);
    },
  );

  it("refuses a broker that skips the challenge", () => {
    expect(() => exchange().verify(signature)).toThrow(/does not know the password/);
  });

  it.each([
    ["too few iterations", `r=${both},s=${salt},i=${scramIterationsMin - 1}`],
    ["too many iterations", `r=${both},s=${salt},i=${scramIterationsMax + 1}`],
    ["2^31 iterations", `r=${both},s=${salt},i=2147483648`],
    ["another nonce", `r=another${both},s=${salt},i=4096`],
    ["the nonce alone", `r=${nonce},s=${salt},i=4096`],
    ["no salt", `r=${both},s=,i=4096`],
    ["an extension", `m=x,r=${both},s=${salt},i=4096`],
    ["nothing", ""],
  ])("refuses %s", async (_, text) => {
    await expect(exchange().prove(text)).rejects.toMatchObject({
      code: expect.stringMatching(/^SIGNAL_(?:REFUSED|MALFORMED)$/),
    });
  });
});
