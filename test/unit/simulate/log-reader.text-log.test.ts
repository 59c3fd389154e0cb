import { describe, expect, it } from "vitest";
import { createTextReader } from "../../../src/simulate/log-reader.js";
import type { LoggedRequest } from "../../../src/simulate/logged-request.js";

const startUs = 1_767_600_000_123_000;
const start = "2026-01-05T08:00:00.123Z";

const headers = [
  ":authority",
  ":method",
  ":path",
  "user-agent",
  "x-forwarded-for",
  "x-request-id",
  "x-user",
];
const readTextLine = createTextReader({ headers, address: "wanted" });

/** A header of a request that was read with those above. */
function header(request: LoggedRequest | undefined, name: string): string | undefined {
  return request?.headers[headers.indexOf(name)];
}

describe("createTextReader()", () => {
  const line =
    `[${start}] "GET /a?b=1 HTTP/1.1" 429 RL,NR 0 12 3 - "1.1.1.1, 10.0.0.9" ` +
    '"curl/8" "id-1" "orders.example:443" "-"';

  it("reads Envoy's default format", () => {
    const request = readTextLine(line);
    expect(request).toMatchObject({ timeUs: startUs, wasLimited: true, address: "10.0.0.9" });
    expect(request?.authority).toBe("orders.example:443");
    expect(Object.fromEntries(headers.map((name) => [name, header(request, name)]))).toEqual({
      ":authority": "orders.example:443",
      ":method": "GET",
      ":path": "/a?b=1",
      "user-agent": "curl/8",
      "x-forwarded-for": "1.1.1.1, 10.0.0.9",
      "x-request-id": "id-1",
      "x-user": "",
    });
  });

  it("reads Istio's default text, with the address of the connection", () => {
    const istio =
      `[${start}] "GET /a HTTP/2" 200 - via_upstream - "-" 0 12 3 2 "1.1.1.1" "curl/8" "id-1" ` +
      '"orders.example" "10.0.0.1:80" ' +
      "outbound|80||orders 10.0.0.2:1 10.0.0.3:80 10.0.0.4:99 - default";
    const request = readTextLine(istio);
    expect(request).toMatchObject({
      wasLimited: false,
      authority: "orders.example",
      address: "10.0.0.4",
    });
  });

  it.each([
    { why: "refused", text: line, timing: { durationUs: 3_000, isError: false, isServed: false } },
    {
      why: "served, in Istio's format",
      text:
        `[${start}] "GET /a HTTP/2" 503 - via_upstream - "-" 0 12 45 44 "1.1.1.1" "curl/8" ` +
        '"id-1" "orders.example" "10.0.0.1:80" ' +
        "outbound|80||orders 10.0.0.2:1 10.0.0.3:80 10.0.0.4:99 - default",
      timing: { durationUs: 45_000, isError: true, isServed: true },
    },
    {
      why: "without a duration",
      text: line.replace(" 0 12 3 - ", " ").replace('"-"', '"10.0.0.1:80"'),
      timing: { durationUs: Number.NaN, isError: false, isServed: true },
    },
  ])("reads how long a request took, where that is wanted: $why", ({ text, timing }) => {
    expect(readTextLine(text)?.timing).toBeUndefined();
    const read = createTextReader({ headers, address: "wanted", timing: "wanted" });
    expect(read(text)?.timing).toEqual(timing);
  });

  it.each(['curl" "x" "y', '" "', 'x" ', ' "x', 'a "quoted" b', "[x]"])(
    "is not led astray by the agent %j",
    (agent) => {
      const request = readTextLine(line.replace("curl/8", agent));
      expect(header(request, "user-agent")).toBe(agent);
      expect(header(request, "x-request-id")).toBe("id-1");
      expect(request?.authority).toBe("orders.example:443");
    },
  );

  it.each([
    "",
    "[",
    "no log at all",
    "[yesterday] ".padEnd(200, '"a" '),
    `[${start}] "GET /a HTTP/1.1" 200 -`,
    line.replace("429", "many"),
    line.replace("GET /a?b=1 HTTP/1.1", "GET"),
    line.replace(start, "then"),
    line.replace("429", "4291"),
    `[${start}] "GET /a HTTP/1.1" 200 - ${'"a'.repeat(20_000)}`,
  ])("does not read %j", (wrong) => {
    expect(readTextLine(wrong)).toBeUndefined();
  });
});
