import { describe, expect, it } from "vitest";
import {
  namespaceInHost,
  signalEgress,
} from "../../../../src/generate/kubernetes/signal-egress.js";

describe("signalEgress()", () => {
  it("opens all ports of a Service's namespace, since rules know those of pods alone", () => {
    const labels = { "kubernetes.io/metadata.name": "monitoring" };
    const rule = { to: [{ namespaceSelector: { matchLabels: labels } }] };
    expect(signalEgress("http://prometheus.monitoring.svc.cluster.local:9090")).toEqual(rule);
    expect(signalEgress("http://prometheus.monitoring.svc:9090/x")).toEqual(rule);
    expect(signalEgress("http://pod-1.prometheus.monitoring.svc/")).toEqual(rule);
  });

  it("lets them reach all of their own namespace for a bare name", () => {
    expect(signalEgress("http://exporter:9100")).toEqual({ to: [{ podSelector: {} }] });
  });

  it.each([
    ["https://status.example.com/x", ["0.0.0.0/0", "::/0"], 443],
    ["http://status.example.com:8443/x", ["0.0.0.0/0", "::/0"], 8_443],
    ["http://10.0.0.7/x", ["10.0.0.7/32"], 80],
    ["http://[fd00::7]:9100/x", ["fd00::7/128"], 9_100],
  ])("opens one port for %s", (url, blocks, port) => {
    expect(signalEgress(url)).toEqual({
      to: blocks.map((cidr) => ({ ipBlock: { cidr } })),
      ports: [{ port, protocol: "TCP" }],
    });
  });
});

describe("namespaceOf()", () => {
  it.each([
    ["headgate.headgate.svc.cluster.local", "headgate"],
    ["headgate.traffic.svc", "traffic"],
    ["headgate.traffic", undefined],
    ["svc.example.com", undefined],
    ["a.svc.example.com", undefined],
    ["headgate", undefined],
  ])("finds in %s %s", (host, namespace) => {
    expect(namespaceInHost(host)).toBe(namespace);
  });
});
