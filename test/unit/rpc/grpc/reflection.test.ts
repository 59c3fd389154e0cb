import { describe, expect, it } from "vitest";
import { unknownPeer } from "../../../../src/core/base/peer.js";
import { createReflectionServices } from "../../../../src/rpc/grpc/reflection.js";
import type { BidiAnswers, BidiReader } from "../../../../src/wire/grpc/service.js";

/** A stream of reflection whose client reads as the test says. */
class Asker implements BidiAnswers {
  readonly told: string[] = [];
  readonly reader: BidiReader;
  isReading = true;

  constructor() {
    const [service] = createReflectionServices([]);
    const method = service?.methods[0];
    if (method?.kind !== "bidi") throw new Error("no such method");
    const terms = { peer: unknownPeer };
    this.reader = method.open({ deadlineMs: 1, metadata: () => undefined, ...terms }, this);
  }

  send(): boolean {
    this.told.push("answer");
    return this.isReading;
  }

  next(): void {
    this.told.push("next");
  }

  end(): void {
    this.told.push("end");
  }

  fail(): void {
    this.told.push("fail");
  }

  /** What happened since the last call. */
  take(): readonly string[] {
    return this.told.splice(0);
  }
}

/** Field 7, list_services, of an empty text. */
const listServices = Buffer.of(0x3a, 0);

describe("createReflectionServices()", () => {
  it("reads no further question while an answer waits for its client", () => {
    const asker = new Asker();
    asker.reader.onMessage(listServices);
    expect(asker.take()).toEqual(["answer", "next"]);
    asker.isReading = false;
    asker.reader.onMessage(listServices);
    expect(asker.take()).toEqual(["answer"]);
    asker.reader.onDrain();
    asker.reader.onDrain();
    expect(asker.take()).toEqual(["next"]);
  });

  it("ends its answers once, whoever ends first", () => {
    const asker = new Asker();
    asker.reader.onMessage(Buffer.of(0xff));
    asker.reader.onCancel();
    asker.reader.onEnd();
    expect(asker.take()).toEqual(["fail"]);
    const other = new Asker();
    other.reader.onCancel();
    other.reader.onEnd();
    expect(other.take()).toEqual(["end"]);
  });
});
