import { describe, expect, it } from "vitest";
import { parsePolicy } from "../../../../src/policy/parse.js";
import { tcpListenersMax } from "../../../../src/policy/proxies/tcp-listeners.js";

function parse(count: number) {
  const listeners = Array.from({ length: count }, (_, i) => {
    return `{name: l${i}, port: ${20_000 + i}, upstream: {address: a.example, port: 1}}`;
  });
  const text = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: many}
spec: {proxies: {tcpListeners: [${listeners.join(", ")}]}}
`;
  return parsePolicy([{ file: "policy.yaml", text }]);
}

describe("tcpListeners", () => {
  it("are as many as a proxy may have, and no more", () => {
    expect(parse(tcpListenersMax)).toMatchObject({ kind: "policy" });
    expect(parse(tcpListenersMax + 1)).toMatchObject({
      kind: "problems",
      problems: [{ id: "HG160" }],
    });
  });

  it("are plain data", () => {
    const parsed = parse(1);
    if (parsed.kind !== "policy") throw new Error("it is wrong");
    const { tcpListeners } = parsed.proxies;
    expect(structuredClone(tcpListeners)).toEqual(tcpListeners);
    expect(tcpListeners[0]).toMatchObject({ name: "l0", port: 20_000, connectionsMax: 1_000 });
  });
});
