import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import {
  createTokenReader,
  keysBytesMax,
  keysMsMax,
  tokenCharsMax,
} from "../../../../src/app/access/admin-oidc.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { startIdentityProvider } from "../../../support/identity-provider.js";
import { realClock } from "../../../support/real-clock.js";
import { useStage } from "../../../support/stage.js";
import { waitFor } from "../../../support/wait.js";

const stage = useStage("test");

const choice = {
  issuer: "https://id.example",
  audience: "headgate",
  // Nobody answers there: what is looked at is unavailable.
  jwksUrl: new URL("http://127.0.0.1:1/"),
  groupsClaim: "groups",
};

describe("createTokenReader()", () => {
  it("looks at no token that is longer than tokens are", async () => {
    const read = createTokenReader(choice, new FakeClock());
    const head = Buffer.from('{"alg":"ES256"}').toString("base64url");
    expect(await read(`${head}.e30.${"A".repeat(86)}`)).toEqual({ kind: "unavailable" });
    expect(await read(`${head}.e30.${"A".repeat(tokenCharsMax)}`)).toEqual({ kind: "invalid" });
    expect(await read("none")).toEqual({ kind: "invalid" });
  });

  /** Reads a token whose provider answers so, when its time is up. */
  async function readWith(answer: (response: ServerResponse, keys: string) => void) {
    const clock = new FakeClock({ epochUs: realClock.epochUs() });
    let hasAsked = false;
    const provider = await startIdentityProvider(stage, (response, keys) => {
      answer(response, keys);
      hasAsked = true;
    });
    const jwksUrl = new URL(provider.jwksUrl);
    const read = createTokenReader({ ...choice, jwksUrl }, clock);
    const verified = read(await provider.sign({}));
    await waitFor("the keys are asked for", () => hasAsked);
    return { clock, verified };
  }

  it("reads as many keys as any provider has", async () => {
    const { verified } = await readWith((response, keys) => {
      response.end(keys.padEnd(keysBytesMax));
    });
    expect(await verified).toMatchObject({ kind: "claims", subject: "ann" });
  });

  // The library reads and parses whatever comes: 100 MB of lists take two gigabytes.
  it.each([
    ["a byte more", (keys: string) => keys.padEnd(keysBytesMax + 1)],
    ["lists of lists", (keys: string) => `${keys.slice(0, -1)},"x":[${"[],".repeat(50_000)}[]]}`],
  ])("takes no keys of a provider that answers %s", async (_, bodyOf) => {
    const { verified } = await readWith((response, keys) => void response.end(bodyOf(keys)));
    expect(await verified).toEqual({ kind: "unavailable" });
  });

  it("hangs up on keys without an end", async () => {
    let isLeft = false;
    const { verified } = await readWith((response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, " ")));
      };
      response.on("drain", write);
      response.on("close", () => {
        isLeft = true;
      });
      write();
    });
    expect(await verified).toEqual({ kind: "unavailable" });
    await waitFor("the provider is left", () => isLeft);
  });

  it("waits for keys that come too slowly no longer than it may", async () => {
    const { clock, verified } = await readWith((response) => void response.write("{"));
    clock.advance(keysMsMax);
    expect(await verified).toEqual({ kind: "unavailable" });
  });
});
