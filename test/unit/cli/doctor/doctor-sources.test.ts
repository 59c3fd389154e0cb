import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  askServer,
  parseServerUrl,
  readSourceFile,
  sourceBytesMax,
} from "../../../../src/cli/doctor/doctor-sources.js";

describe("askServer()", () => {
  it("refuses an answer that never ends, and redirections", async () => {
    const part = Buffer.alloc(1_048_576, "x");
    const server = createServer((request, response) => {
      if (request.url === "/away") {
        response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
        return;
      }
      const write = (): void => {
        while (!response.destroyed && response.write(part));
      };
      response.on("drain", write);
      write();
    });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
    const url = new URL(`http://127.0.0.1:${port}`);
    await expect(askServer(url, "/long")).rejects.toThrow(`longer than ${sourceBytesMax} bytes`);
    await expect(askServer(url, "/away")).rejects.toThrow("cannot be reached");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

describe("readSourceFile()", () => {
  it("refuses a file beyond its bound without reading it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "headgate-sources-"));
    const path = join(folder, "dump.json");
    writeFileSync(path, "{}");
    expect(await readSourceFile(path)).toBe("{}");
    truncateSync(path, sourceBytesMax + 1);
    await expect(readSourceFile(path)).rejects.toThrow(`longer than ${sourceBytesMax} bytes`);
    rmSync(folder, { recursive: true });
  });
});

describe("parseServerUrl()", () => {
  it.each(["", "127.0.0.1:9901", "ftp://a", "http://me:secret@a", "http://a?x=1"])(
    "refuses %j",
    (text) => expect(parseServerUrl(text)).toBeUndefined(),
  );
});
