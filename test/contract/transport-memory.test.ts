import { connect } from "node:http2";
import { beforeAll, describe, expect, it } from "vitest";
import { bundledProgram } from "../support/bundled-program.js";
import type { ChildProgram } from "../support/child-program.js";
import { framed } from "../support/recorded-stream.js";
import { useStage } from "../support/stage.js";
import { askPath, sendRaw } from "../support/transports.js";
import { waitFor } from "../support/wait.js";
import type { TransportLook } from "./transport-program.js";

const stage = useStage("file");
const callCount = 100;
const message = framed(Buffer.alloc(60_000));

let program: ChildProgram;

// In a process of its own, where nobody else has buffers.
beforeAll(() => {
  const args = [bundledProgram(new URL("transport-program.ts", import.meta.url))];
  program = stage.spawn({ name: "transports", file: process.execPath, args });
});

async function openPort(): Promise<number> {
  const line = await waitFor(
    "it serves",
    () => (program.output.endsWith("\n") ? program.output : undefined),
    { withinMs: 30_000 },
  );
  return Number(line);
}

describe("a call with messages each way", () => {
  it("keeps nothing of a message that was read, however long it stays open", async () => {
    const session = connect(`http://127.0.0.1:${await openPort()}`);
    stage.atEnd(() => session.destroy());
    const look = async (): Promise<TransportLook> => {
      const { body } = await sendRaw(session, [framed("")], { ":path": "/test.Service/Look" });
      return JSON.parse(body.subarray(5).toString());
    };
    await look();
    const before = await look();
    const head = { ":method": "POST", ":path": askPath, "content-type": "application/grpc" };
    const calls = Array.from({ length: callCount }, () =>
      session.request({ ...head, te: "trailers" }),
    );
    for (const call of calls) call.write(message);
    await waitFor("all are read", async () => (await look()).readCount === callCount);
    const after = await look();
    expect(calls.filter((call) => call.closed)).toEqual([]);
    expect(after.bufferBytes - before.bufferBytes).toBeLessThan((callCount * message.length) / 4);
  });
});
