import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { blocksOf, readPages } from "../support/docs.js";
import { freePort } from "../support/free-port.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Below the package, so that programs find it by its name, as its users do. */
const folder = resolve("test-output/docs-server");

const run = promisify(execFile);

/** What the guide says of Connect in a sentence. */
const interceptor = `
import { createServerAdmission } from "headgate/server";
import { admissionKey, connectAdmission } from "headgate/server/connect";

/** @type {import("@connectrpc/connect").Interceptor} */
const admitting = connectAdmission(createServerAdmission({ name: "orders" }));
console.log(admitting, admissionKey.defaultValue?.brownout);
`;

const programs = readPages()
  .flatMap(blocksOf)
  .flatMap(({ mark, text }) =>
    mark?.startsWith("server ") ? [{ name: mark.slice(7), text }] : [],
  );

describe("programs that the guide of admission in a service shows", () => {
  it.each(programs)("serve requests and report their load: $name", async ({ name, text }) => {
    const port = await freePort();
    const file = join(folder, `${name}.mjs`);
    await mkdir(folder, { recursive: true });
    await writeFile(file, text.replace("8080", String(port)));
    const program = stage.spawn({ name, file: process.execPath, args: [file] });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const answer = await waitFor("it answers", () => http.send({ port, path: "/orders" }));
    expect(answer.status).toBe(200);
    expect(answer.body).toMatch(/^(?:all orders|for normal callers|normal)$/);
    expect(answer.headers["endpoint-load-metrics"]).toMatch(/^TEXT application_utilization=/);
    const path = "/checkout/1";
    const headers = { "x-envoy-expected-rq-timeout-ms": "1" };
    expect(await http.send({ port, path, headers })).toMatchObject({ status: 504 });
    expect(program.output).toBe("");
  });

  it("compile with strict settings, and a wrong option does not", async () => {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      allowJs: true,
      checkJs: true,
      noEmit: true,
      module: "NodeNext",
      target: "ES2022",
      types: ["node"],
    };
    const wrong = programs.find(({ name }) => name === "http")?.text.replace('"orders"', "1") ?? "";
    // Express has no types in its package.
    const typed = programs.filter(({ name }) => name !== "express");
    const all = [
      ...typed,
      { name: "interceptor", text: interceptor },
      { name: "wrong", text: wrong },
    ];
    await mkdir(folder, { recursive: true });
    for (const { name, text } of all) await writeFile(join(folder, `typed-${name}.mjs`), text);
    const files = all.map(({ name }) => `typed-${name}.mjs`);
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    const compiler = resolve("node_modules/typescript/bin/tsc");
    const { stdout } = await run(process.execPath, [
      compiler,
      "-p",
      folder,
      "--pretty",
      "false",
    ]).catch((error: { stdout: string }) => error);
    const errors = stdout.trim().split("\n");
    expect(errors).toEqual([expect.stringMatching(/typed-wrong\.mjs.* TS2322: Type 'number'/)]);
  });

  it("are all of the guide", () => {
    expect(programs.map(({ name }) => name)).toEqual(["http", "express", "fastify", "options"]);
  });
});
