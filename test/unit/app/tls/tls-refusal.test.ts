import { describe, expect, it } from "vitest";
import { type LogEvent, silentLogger } from "../../../../src/app/base/logger.js";
import { refusalReportMsMin, TlsRefusals } from "../../../../src/app/tls/tls-refusal.js";
import { FakeClock } from "../../../support/fake-clock.js";

describe("TlsRefusals", () => {
  function create() {
    const lines: LogEvent[] = [];
    const clock = new FakeClock();
    const logger = { ...silentLogger, warn: (event: LogEvent) => lines.push(event) };
    return { refusals: new TlsRefusals({ clock, logger }), clock, lines };
  }

  it("counts every connection, and logs each cause from time to time", () => {
    const { refusals, clock, lines } = create();
    for (let i = 0; i < 5; i += 1) refusals.note("wrongClientSan");
    refusals.note("plaintext");
    expect(lines).toEqual([
      { event: "tlsRefused", cause: "wrongClientSan", count: 1 },
      { event: "tlsRefused", cause: "plaintext", count: 1 },
    ]);
    clock.advance(refusalReportMsMin - 1);
    refusals.note("wrongClientSan");
    expect(lines).toHaveLength(2);
    clock.advance(1);
    refusals.note("wrongClientSan");
    expect(lines.at(-1)).toEqual({ event: "tlsRefused", cause: "wrongClientSan", count: 7 });
    expect([...refusals.countByCause]).toEqual([
      ["wrongClientSan", 7],
      ["plaintext", 1],
    ]);
  });

  it("only counts what every port check brings about", () => {
    const { refusals, lines } = create();
    refusals.note("connectionLost");
    refusals.note("handshakeTimeout");
    expect(lines).toEqual([]);
    expect(refusals.countByCause.get("connectionLost")).toBe(1);
  });
});
