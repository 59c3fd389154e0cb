import { describe, expect, it } from "vitest";
import { runCli } from "../../../../src/cli/program.js";

async function schema(...args: readonly string[]): Promise<unknown> {
  let out = "";
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: () => {},
  };
  expect(await runCli(["schema", ...args], output)).toBe(0);
  return JSON.parse(out);
}

describe("headgate schema", () => {
  it("prints the schema of a policy file", async () => {
    expect(await schema()).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $ref: "#/$defs/policy",
      $defs: {
        service: {
          properties: { name: { description: expect.any(String) } },
          additionalProperties: false,
          required: ["name"],
        },
      },
    });
  });

  it("prints that of a file of envoyproxy/ratelimit", async () => {
    expect(await schema("--ratelimit")).toMatchObject({
      $defs: { ratelimitFile: { required: ["domain"] } },
    });
  });
});
