import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createStyle } from "../../../src/app/base/style.js";
import {
  type Running,
  renderBanner,
  renderNext,
  renderTry,
} from "../../../src/demo/demo-banner.js";
import { renderEnvoyConfig } from "../../../src/demo/demo-envoy.js";
import { DemoScope } from "../../../src/demo/demo-scope.js";

const example = readFileSync("envoy/demo/edge/envoy.yaml", "utf8");
const plain = createStyle(false);

function portsIn(text: string): readonly string[] {
  return [...text.matchAll(/port_value: (\S+?)[}\s]/g)].map(([, port = ""]) => port);
}

describe("renderEnvoyConfig()", () => {
  it("puts the chosen ports in, a free one for the admin, and changes nothing else", () => {
    const rendered = renderEnvoyConfig(example, { envoy: 1, upstream: 2, headgate: 3 });
    expect(portsIn(rendered)).toEqual(["0", "1", "0", "2", "3", "0"]);
    const blank = (text: string): string => text.replaceAll(/port_value: \d+/g, "port_value: _");
    expect(blank(rendered)).toBe(blank(example));
  });

  it("keeps apart ports that swap places", () => {
    const rendered = renderEnvoyConfig(example, {
      envoy: 8_081,
      upstream: 10_000,
      headgate: 9_901,
    });
    expect(portsIn(rendered)).toEqual(["0", "8081", "0", "10000", "9901", "0"]);
  });

  it("refuses a file in which a port is missing or stands twice", () => {
    const ports = { envoy: 1, upstream: 2, headgate: 3 };
    const missing = example.replace("port_value: 10000", "port_value: 10001");
    expect(() => renderEnvoyConfig(missing, ports)).toThrow("port_value 10000");
    expect(() => renderEnvoyConfig(example + example, ports)).toThrow("is 2 times");
  });

  it("puts in the ports of both services and of the loop, where an example has them", () => {
    const layers = readFileSync("envoy/three-layers/edge/envoy.yaml", "utf8");
    const ports = { envoy: 1, upstream: 2, headgate: 3, control: 4 };
    expect(portsIn(renderEnvoyConfig(layers, ports))).toEqual([
      "0",
      "1",
      "0",
      "2",
      "2",
      "3",
      "4",
      "0",
    ]);
  });
});

describe("the demo's banner", () => {
  const ports = { envoy: 1_000, upstream: 2_000, headgate: 3_000 };
  const running: Running = {
    grpcPort: 3_000,
    httpPort: 4_000,
    consolePort: 6_000,
    policyPath: "policy.yaml",
    envoy: { kind: "running", ports, adminAddress: "127.0.0.1:5000", logPath: "/tmp/envoy.log" },
  };
  const alone: Running = { ...running, envoy: { kind: "missing", why: "why", hint: "do this" } };

  it("names every address, the policy and the log", () => {
    const text = renderBanner(running, plain);
    for (const part of [
      "1000/",
      "4000/",
      "127.0.0.1:3000",
      "5000/",
      "6000/",
      "2000",
      "policy.yaml",
    ]) {
      expect(text).toContain(part);
    }
    expect(text).toContain("/tmp/envoy.log");
    expect(renderTry(running, plain)).toContain("curl -i -H 'x-user: you' http://127.0.0.1:1000/");
    expect(renderNext(running, plain)).toContain("http://127.0.0.1:4000/metrics");
    expect(renderNext(running, plain)).toContain("http://127.0.0.1:4000/json");
  });

  it("says why there is no Envoy, how to get one, and how to ask without it", () => {
    const text = renderBanner(alone, plain);
    expect(text).toContain("Envoy is missing: why.\n  To install it, do this.");
    expect(text).not.toContain("1000");
    expect(renderTry(alone, plain)).toMatch(/curl -i -d '\{.*\}' http:\/\/127\.0\.0\.1:4000\/json/);
    expect(renderNext(alone, plain)).not.toContain("/json");
  });
});

describe("DemoScope", () => {
  it("ends the newest first, and everything even when one fails", async () => {
    const ended: string[] = [];
    const scope = new DemoScope();
    await scope.add(() => ended.push("first"));
    await scope.add(() => Promise.reject(new Error("stuck")));
    await scope.add(() => ended.push("last"));
    await expect(scope.close()).rejects.toThrow("stuck");
    expect(ended).toEqual(["last", "first"]);
    await scope.close();
    expect(ended).toHaveLength(2);
  });

  it("ends at once what comes after the end", async () => {
    const scope = new DemoScope();
    await scope.close();
    let isEnded = false;
    await scope.add(() => {
      isEnded = true;
    });
    expect(isEnded).toBe(true);
    expect(scope.isClosed).toBe(true);
  });
});
