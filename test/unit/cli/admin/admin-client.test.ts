import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import { smallFileBytesMax } from "../../../../src/cli/input/small-file.js";
import { type AdminScript, AdminServer } from "../../../support/admin-server.js";
import { CliFolder, captureCli } from "../../../support/cli.js";
import { freePort } from "../../../support/free-port.js";

let folder: CliFolder;
const closers: (() => unknown)[] = [];

beforeEach(async () => {
  folder = await CliFolder.create();
});

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await folder.remove();
});

async function serve(script: AdminScript): Promise<string> {
  const server = await AdminServer.start(script);
  closers.push(() => server.close());
  return server.url;
}

function rules(url: string, env: Readonly<Record<string, string>> = {}) {
  return captureCli(["rules", "--admin-url", url], { env });
}

describe("createAdminClient()", () => {
  it("takes its address from the environment, and its token from there or a file", async () => {
    const seen: (string | null)[] = [];
    const url = await serve({
      limits: {
        listRules: (_request, context) => {
          seen.push(context.requestHeader.get("authorization"));
          return {};
        },
      },
    });
    const env = { HEADGATE_ADMIN_URL: `${url}/` };
    const file = await folder.write("token", "from-file\n");
    for (const more of [
      {},
      { HEADGATE_ADMIN_TOKEN: "word" },
      { HEADGATE_ADMIN_TOKEN_FILE: file },
    ]) {
      const { code, err } = await captureCli(["rules"], { env: { ...env, ...more } });
      expect([code, err]).toEqual([0, ""]);
    }
    expect(seen).toEqual([null, "Bearer word", "Bearer from-file"]);
  });

  it.each([
    ["ftp://x", {}, "must start with http"],
    ["http://user:secret@127.0.0.1", {}, "use HEADGATE_ADMIN_TOKEN for a token"],
    ["http://127.0.0.1", { HEADGATE_ADMIN_TOKEN: "secret word" }, "it must be one word"],
    [
      "http://127.0.0.1",
      { HEADGATE_ADMIN_TOKEN: "secret", HEADGATE_ADMIN_TOKEN_FILE: "x" },
      "remove one",
    ],
  ])("refuses %s with %o as wrong usage, and quotes no secret", async (url, env, words) => {
    const { code, err } = await rules(url, env);
    expect(code).toBe(2);
    expect(err).toContain(words);
    expect(err).not.toContain("secret");
  });

  it("says which file cannot be read, and reads none that is no token", async () => {
    const large = await folder.write("large", "x".repeat(smallFileBytesMax + 1));
    for (const [path, words] of [
      ["/no/such/file", "no such file"],
      [large, `more than ${smallFileBytesMax} bytes`],
    ] as const) {
      const { code, err } = await rules("http://127.0.0.1", { HEADGATE_ADMIN_TOKEN_FILE: path });
      expect(code).toBe(1);
      expect(err).toContain(words);
    }
  });

  it("warns of a token that goes over a network in the clear", async () => {
    const env = { HEADGATE_ADMIN_TOKEN: "secret" };
    const far = await rules("http://no-such-host.invalid:8082", env);
    expect(far.err).toContain("unencrypted");
    expect(far.err).not.toContain("secret");
    const near = await rules(`http://127.0.0.1:${await freePort()}`, env);
    expect(near.err).not.toContain("unencrypted");
  });
});

describe("a Headgate that cannot be reached", () => {
  it("ends with 5, and says what to do", async () => {
    const { code, out, err } = await rules(`http://127.0.0.1:${await freePort()}`);
    expect(code).toBe(5);
    expect(out).toBe("");
    expect(err).toContain("No Headgate answers at http://127.0.0.1");
    expect(err).toContain("headgate serve");
  });

  it("is told from another server on that port", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(404, { "content-type": "text/html" }).end("<p>nothing");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const { code, err } = await rules(`http://127.0.0.1:${port}`);
    expect(code).toBe(5);
    expect(err).toContain("is not an admin port");
  });

  it("is told from one that speaks plaintext where TLS is asked for", async () => {
    const url = await serve({});
    const { code, err } = await rules(url.replace("http:", "https:"));
    expect(code).toBe(5);
    expect(err).toContain("TLS");
  });
});

describe("commandFailure()", () => {
  it.each([
    [Code.Unauthenticated, "a token is needed", {}, 1, "HEADGATE_ADMIN_TOKEN_FILE"],
    [
      Code.Unauthenticated,
      "expired",
      { HEADGATE_ADMIN_TOKEN: "x" },
      1,
      "The token has expired; get a new one.",
    ],
    [Code.Unauthenticated, "unknown token", { HEADGATE_ADMIN_TOKEN: "x" }, 1, "Check the token."],
    [Code.PermissionDenied, "this needs the role operator", {}, 1, "This needs the role operator."],
    [Code.NotFound, 'no such domain; did you mean "shop"?', {}, 1, 'did you mean "shop"?'],
    [Code.Aborted, "it has version 7 now", {}, 1, "--expected-version"],
    [Code.InvalidArgument, "domain: too long", {}, 2, "Domain: too long."],
    [Code.ResourceExhausted, "too many calls", {}, 1, "less often"],
    [Code.Unavailable, "the store is away", {}, 1, "Try again in a moment."],
    [Code.Internal, "a bug", {}, 1, "log"],
    [Code.NotFound, "evil \u001b[31m\u202etext", {}, 1, "Evil \ufffd[31m\ufffdtext."],
  ])("tells %i %s", async (code, said, env, exitCode, words) => {
    const url = await serve({
      limits: {
        listRules: () => {
          throw new ConnectError(said, code);
        },
      },
    });
    const run = await rules(url, env);
    expect(run.code).toBe(exitCode);
    expect(run.err).toContain(words);
    expect(run.err).toContain("headgate rules: ");
  });

  it("tells of a method that the other side does not have", async () => {
    const url = await serve({});
    const { code, err } = await captureCli(["keys", "overrides", "--admin-url", url], { env: {} });
    expect(code).toBe(1);
    expect(err).toContain("headgate keys overrides: ");
    expect(err).toContain("older");
  });
});

describe("loadConfig()", () => {
  it("lets pass what only the command line reads", () => {
    const names = ["URL", "TOKEN", "TOKEN_FILE", "CA", "CERT", "KEY"];
    const env = Object.fromEntries(names.map((name) => [`HEADGATE_ADMIN_${name}`, "x"]));
    expect(loadConfig({ flags: {}, env }).kind).toBe("config");
    expect(loadConfig({ flags: {}, env: { HEADGATE_ADMIN_URI: "x" } }).kind).toBe("problems");
  });
});
