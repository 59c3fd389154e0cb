import { describe, expect, it } from "vitest";
import { parseSeriesSelector } from "../../../../src/core/base/series-selector.js";
import {
  pageLabelsMax,
  pageLineCharsMax,
  SignalPage,
} from "../../../../src/fleet/signals/signal-page.js";
import type { SignalReadings } from "../../../../src/fleet/signals/signal-readings.js";

/** As kafka_exporter writes it, shortened. */
const page = `# HELP kafka_consumergroup_lag Lag of a group at a topic and partition
# TYPE kafka_consumergroup_lag gauge
kafka_consumergroup_lag{consumergroup="linearizer",partition="0",topic="orders"} 30000
kafka_consumergroup_lag{consumergroup="linearizer",partition="1",topic="orders"} 2.5e+04
kafka_consumergroup_lag{consumergroup="linearizer",partition="0",topic="users"} 12
kafka_consumergroup_lag{consumergroup="audit",partition="0",topic="orders"} 7e+06
kafka_consumergroup_lag_sum{consumergroup="linearizer",topic="orders"} 55000
kafka_consumergroup_members{consumergroup="linearizer"} 3
`;

function read(
  text: string,
  { select, by, step = text.length }: { select: string; by?: string; step?: number },
): SignalReadings {
  const selector = parseSeriesSelector(select);
  if (selector === undefined) throw new Error("the test's selector is none");
  const reader = new SignalPage(selector, { by, keysMax: 100 });
  for (let at = 0; at < text.length; at += step) reader.add(text.slice(at, at + step));
  return reader.finish();
}

describe("SignalPage", () => {
  const select = 'kafka_consumergroup_lag{consumergroup="linearizer"}';

  it.each([1, 7, 64, 10_000])("adds up what is meant, in pieces of %d characters", (step) => {
    expect(read(page, { select, step })).toEqual({ kind: "whole", reading: 55_012 });
    expect(read(page, { select, by: "topic", step })).toEqual({
      kind: "byKey",
      readings: new Map([
        ["orders", 55_000],
        ["users", 12],
      ]),
    });
  });

  it.each([
    { line: "up 1", reading: 1 },
    { line: "up\t1 1700000000000", reading: 1 },
    { line: "up{} 1", reading: 1 },
    { line: 'up{a="b",} 1', reading: 1 },
    { line: 'up { a="b" } 1', reading: undefined },
    { line: 'up{ a = "b" , c="d" } 1', reading: 1 },
    { line: String.raw`up{a="x\\\"}\n"} 1`, reading: 1 },
    { line: 'up{a="b"} 1 # {trace="x"} 2', reading: 1 },
    { line: "up 1\r", reading: 1 },
    { line: "up NaN", reading: undefined },
    { line: "up +Inf", reading: undefined },
    { line: "up", reading: undefined },
    { line: 'up{a="b" 1', reading: undefined },
    { line: 'up{a="b}', reading: undefined },
    { line: "up{a=b} 1", reading: undefined },
    { line: "upper 1", reading: undefined },
    { line: "up1 5", reading: undefined },
    { line: "# up 1", reading: undefined },
  ])("reads $line as $reading", ({ line, reading }) => {
    const outcome = (): SignalReadings => read(`${line}\n`, { select: "up" });
    if (reading === undefined) expect(outcome).toThrow("has no such value");
    else expect(outcome()).toEqual({ kind: "whole", reading });
  });

  it("reads the last line without its end", () => {
    expect(read("up 1\nup 2", { select: "up" })).toEqual({ kind: "whole", reading: 3 });
  });

  it("leaves aside lines and labels beyond its bounds, and goes on after them", () => {
    const padded = (length: number) => `up${" ".repeat(length - 3)}1`;
    const long = `${padded(pageLineCharsMax)}\n${padded(pageLineCharsMax + 1)}\nup 4\n`;
    for (const step of [100, long.length]) {
      expect(read(long, { select: "up", step })).toEqual({ kind: "whole", reading: 5 });
    }
    const labels = (count: number) => Array.from({ length: count }, (_, i) => `l${i}="v"`).join();
    const wide = `up{${labels(pageLabelsMax)}} 1\nup{${labels(pageLabelsMax + 1)}} 2\n`;
    expect(read(wide, { select: "up" })).toEqual({ kind: "whole", reading: 1 });
  });

  it("takes time in proportion to hostile lines", () => {
    const hostile = [
      `up{${'a="'.repeat(5_000)}`,
      `up{a="${"\\".repeat(16_000)}`,
      `up{${" ,".repeat(8_000)}`,
      `up${" ".repeat(16_000)}`,
    ];
    const text = hostile.map((line) => `${line}\n`.repeat(50)).join("");
    expect(() => read(text, { select: "up" })).toThrow("has no such value");
  });
});
