import { describe, expect, it } from "vitest";
import {
  createCsvReader,
  createJsonReader,
  readNames,
  splitCsv,
} from "../../../src/simulate/named-log.js";

const startUs = 1_767_600_000_123_000;
const start = "2026-01-05T08:00:00.123Z";
const names = {
  wanted: { headers: ["x-user", ":path"], address: "wanted" as const },
  renamed: new Map<string, string>(),
};

describe("createJsonReader()", () => {
  it("reads the names of Istio, and headers by their own names", () => {
    const read = createJsonReader(names);
    const line = JSON.stringify({
      start_time: start,
      method: "GET",
      path: "/a",
      authority: "orders.example",
      response_code: 200,
      response_flags: "-",
      downstream_remote_address: "10.0.0.4:99",
      x_user: "ann",
    });
    expect(read(line)).toEqual({
      timeUs: startUs,
      wasLimited: false,
      authority: "orders.example",
      address: "10.0.0.4",
      headers: ["ann", "/a"],
    });
  });

  it.each([
    {
      why: "all of it",
      fields: { duration: 12.5, response_code: 503, upstream_host: "10.0.0.9:80" },
      timing: { durationUs: 12_500, isError: true, isServed: true },
    },
    {
      why: "a request that was refused on its way",
      fields: { duration: "3", response_code: 429, upstream_host: null },
      timing: { durationUs: 3_000, isError: false, isServed: false },
    },
    {
      why: "nothing",
      fields: {},
      timing: { durationUs: Number.NaN, isError: undefined, isServed: true },
    },
    {
      why: "text where a number should be",
      fields: { duration: "soon", response_code: "5xx" },
      timing: { durationUs: Number.NaN, isError: undefined, isServed: true },
    },
  ])("reads how long a request took, where that is wanted: $why", ({ fields, timing }) => {
    const line = JSON.stringify({ start_time: start, ...fields });
    const wanted = { ...names.wanted, timing: "wanted" as const };
    expect(createJsonReader({ ...names, wanted })(line)?.timing).toEqual(timing);
    expect(createJsonReader(names)(line)).not.toHaveProperty("timing");
  });

  it("reads what a call used, and nothing that is no count", () => {
    const wanted = { ...names.wanted, usage: "wanted" } as const;
    const line = JSON.stringify({
      start_time: start,
      model: "m".repeat(200),
      prompt_tokens: 120,
      cached_tokens: "7",
      output_tokens: -1,
      bytes_sent: 1e21,
      units: "1.5",
    });
    expect(createJsonReader({ ...names, wanted })(line)?.usage).toEqual({
      model: "m".repeat(128),
      counts: { inputTokens: 120, cachedTokens: 7 },
    });
    expect(createJsonReader(names)(line)).not.toHaveProperty("usage");
    expect(readNames(wanted)).toContain("output-tokens");
  });

  it("reads other names where it is told them", () => {
    const renamed = new Map([
      ["time", "at"],
      ["x-user", "who"],
    ]);
    const request = createJsonReader({ ...names, renamed })(
      JSON.stringify({ at: start, start_time: "then", who: "ann", "x-user": "bob" }),
    );
    expect(request?.timeUs).toBe(startUs);
    expect(request?.headers).toEqual(["ann", ""]);
  });

  it.each(["", "[]", "null", "{", '"a"', "{}", '{"start_time": {}}', '{"__proto__": {}}'])(
    "does not read %j",
    (line) => {
      expect(createJsonReader(names)(line)).toBeUndefined();
    },
  );
});

describe("what a line of JSON says", () => {
  it.each([
    [7, "7"],
    [1.5, "1.5"],
    ["", ""],
    ["-", ""],
    ["\u00fc", "\u00fc"],
    [true, ""],
    [null, ""],
    [["ann"], ""],
    [{ a: "ann" }, ""],
  ])("is %j as the text %j", (value, text) => {
    const line = JSON.stringify({ time: start, x_user: value });
    expect(createJsonReader(names)(line)?.headers[0]).toBe(text);
  });

  it("is the last of what it says twice", () => {
    const line = `{"time":"${start}","x_user":"ann","x_user":"bob"}`;
    expect(createJsonReader(names)(line)?.headers[0]).toBe("bob");
  });
});

describe("splitCsv()", () => {
  it.each([
    ["a,b,", ["a", "b", ""]],
    ['"a,b",c', ["a,b", "c"]],
    ['a,"",""""', ["a", "", '"']],
    ['"a', ['"a']],
  ])("splits %j", (line, cells) => {
    expect(splitCsv(line)).toEqual(cells);
  });
});

describe("readNames()", () => {
  it("tells parts and wanted headers, and each of them is read by its other name", () => {
    const wanted = { ...names.wanted, headers: ["x-user", ":path", ":method"] };
    expect(readNames(wanted)).toEqual([
      ...["time", "method", "path", "authority", "flags", "x-forwarded-for", "remote-address"],
      ...["x-user", ":path", ":method"],
    ]);
    for (const name of readNames(wanted)) {
      const value = name === "time" ? start : name === "flags" ? "RL" : "other";
      const renamed = new Map([[name, "renamed"]]);
      const read = createJsonReader({ wanted, renamed });
      const request = read(JSON.stringify({ ts: start, renamed: value }));
      const { timeUs, wasLimited, ...texts } = request ?? {};
      expect(timeUs, name).toBe(startUs);
      const isRead = name === "time" || wasLimited || JSON.stringify(texts).includes("other");
      expect(isRead, name).toBe(true);
    }
  });
});

describe("createCsvReader()", () => {
  it("reads columns by their titles", () => {
    const read = createCsvReader("time, method,x-user,flags", names);
    const request = read?.(`${start},GET,"ann, ""the"" first","UF,RL"`);
    expect(request).toMatchObject({ timeUs: startUs, wasLimited: true });
    expect(request?.headers).toEqual(['ann, "the" first', ""]);
  });

  it("does not read a line without a time", () => {
    expect(createCsvReader("time,x-user", names)?.(",ann")).toBeUndefined();
  });

  it("wants a title that says the time", () => {
    expect(createCsvReader("method,x-user", names)).toBeUndefined();
    const renamed = new Map([["time", "at"]]);
    expect(createCsvReader("time,x-user", { ...names, renamed })).toBeUndefined();
    const read = createCsvReader(" at ,x-user", { ...names, renamed });
    expect(read?.(`${start},ann`)?.timeUs).toBe(startUs);
  });
});
