import { describe, expect, it } from "vitest";
import { checkVersion } from "../../../../src/generate/check/check-documents.js";
import { checkMessage } from "../../../../src/generate/check/check-message.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

const api = readEnvoyApi();

describe("checkVersion()", () => {
  const limit = {
    hits_addend: { number: 5, is_negative_hits: true },
    actions: [{ remote_address: {} }],
  };
  const value = { name: "a", domains: ["*"], rate_limits: [limit] };
  const { message } = checkMessage(
    { message: "envoy.config.route.v3.VirtualHost", value, path: [] },
    api,
  );

  it.each([
    [40, []],
    [38, []],
    [37, ["is_negative_hits"]],
    [33, ["is_negative_hits"]],
    [32, ["hits_addend", "is_negative_hits"]],
  ])("finds what Envoy 1.%i has not: %o", (minor, names) => {
    const problems = message === undefined ? [] : checkVersion(message, { major: 1, minor });
    expect(problems).toHaveLength(names.length);
    for (const [i, name] of names.entries()) {
      expect(problems[i]).toMatchObject({ id: "HG454", severity: "error" });
      expect(problems[i]?.message).toContain(`.${name} is not in Envoy 1.${minor}`);
    }
  });
});
