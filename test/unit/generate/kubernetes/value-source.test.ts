import { describe, expect, it } from "vitest";
import {
  holds,
  LiteralSource,
  valuesWith,
} from "../../../../src/generate/kubernetes/value-source.js";

describe("LiteralSource", () => {
  const values = valuesWith({
    name: "gate",
    memoryMi: 513,
    "drain.delayMs": 1_001,
    "drain.graceMs": 1_000,
    tolerations: [{ key: "a" }, { key: "b" }],
  });
  const source = new LiteralSource("traffic", values);

  it("puts values where names of them stand", () => {
    expect(source.text("name")).toBe("gate");
    expect(source.text("name", "@-pods")).toBe("gate-pods");
    expect(source.text("ports.grpc", ":@")).toBe(":8081");
    expect(source.joined("@:@", ["image.repository", "image.tag"])).toBe("headgate:0.1.0");
    expect(source.number("memoryMi")).toBe(513);
  });

  it("takes a value with a placeholder or a dollar in it as it is", () => {
    const odd = new LiteralSource(
      "",
      valuesWith({ "image.repository": "a@$&", "image.tag": "$1" }),
    );
    expect(odd.joined("@:@", ["image.repository", "image.tag"])).toBe("a@$&:$1");
  });

  it("rounds halves down, and seconds up", () => {
    expect(source.half("memoryMi", "@Mi")).toBe("256Mi");
    expect(source.seconds(["drain.delayMs", "drain.graceMs"], 15)).toBe(18);
    expect(source.seconds(["drain.graceMs"], 0)).toBe(1);
  });

  it("spreads lists and maps among other items", () => {
    expect(source.itemsOf("tolerations")).toEqual([{ key: "a" }, { key: "b" }]);
    expect(source.entriesOf("redis.podLabels")).toEqual({ "app.kubernetes.io/name": "redis" });
    expect(source.mapIf({ name: "certManager.enabled" }, { a: 1 })).toEqual({});
    expect(source.listIf({ name: "certManager.enabled", isNot: true }, [1])).toEqual([1]);
  });
});

describe("holds()", () => {
  it.each([
    ["redis.enabled", true, true],
    ["redis.enabled", false, false],
    ["prometheusUrl", "", false],
    ["prometheusUrl", "http://x", true],
    ["tolerations", [], false],
    ["tolerations", [{}], true],
    ["affinity", {}, false],
    ["affinity", { a: 1 }, true],
    ["drain.delayMs", 0, false],
  ] as const)("says of %s = %j: %s, as Helm does", (name, value, expected) => {
    const values = valuesWith({ [name]: value });
    expect(holds({ name }, values)).toBe(expected);
    expect(holds({ name, isNot: true }, values)).toBe(!expected);
  });
});
