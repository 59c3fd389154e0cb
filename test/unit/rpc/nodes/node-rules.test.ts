import { describe, expect, it } from "vitest";
import {
  allowsName,
  allowsNode,
  type NodeRule,
  namePartsMax,
  nodeRulesMax,
  parseNodeRules,
} from "../../../../src/rpc/nodes/node-rules.js";
import { markedBlock } from "../../../support/docs.js";

function rulesOf(text: string): readonly NodeRule[] {
  const parsed = parseNodeRules(text);
  if (parsed.kind === "problem") throw new Error(parsed.message);
  return parsed.value;
}

const mesh = "spiffe://shop.example/ns/{ns}/sa/*  sidecar~*~*.{ns}~{ns}.svc.*  {ns}-*";
const web = "spiffe://shop.example/ns/web/sa/edge";
const webNode = "sidecar~10.0.0.1~edge-0.web~web.svc.cluster.local";

describe("allowsNode()", () => {
  it.each([
    { rules: mesh, name: web, node: webNode, cluster: "web-1", allowed: true },
    { rules: mesh, name: web, node: webNode, cluster: undefined, allowed: true },
    { rules: mesh, name: web, node: webNode, cluster: "pay-1", allowed: false },
    { rules: mesh, name: web, node: webNode.replaceAll("web", "pay"), allowed: false },
    { rules: mesh, name: `${web}/more`, node: webNode, allowed: false },
    { rules: mesh, name: `x${web}`, node: webNode, allowed: false },
    { rules: mesh, name: web.replace(".", "x"), node: webNode, allowed: false },
    { rules: "{node}.edge.example {node}", name: "a.edge.example", node: "a", allowed: true },
    { rules: "{node}.edge.example {node}", name: "a.edge.example", node: "b", allowed: false },
    { rules: "{node}.edge.example {node}", name: "a.b.edge.example", node: "a.b", allowed: false },
    { rules: "{node}.edge.example {node}", name: "*.edge.example", node: "*", allowed: true },
    { rules: "{node}.edge.example {node}", name: "*.edge.example", node: "any", allowed: false },
    {
      rules: "spiffe://a/one one,spiffe://a/two two",
      name: "spiffe://a/two",
      node: "two",
      allowed: true,
    },
    {
      rules: "spiffe://a/one one\nspiffe://a/two two",
      name: "spiffe://a/two",
      node: "one",
      allowed: false,
    },
    {
      rules: "spiffe://a/gateways *",
      name: "spiffe://a/gateways",
      node: "anything",
      allowed: true,
    },
    { rules: "spiffe://a/x+(y) n$", name: "spiffe://a/x+(y)", node: "n$", allowed: true },
  ])("by $rules lets $name speak for $node in $cluster: $allowed", (row) => {
    const { rules, name, allowed, ...said } = row;
    expect(allowsNode(rulesOf(rules), ["dns.example", name], said)).toBe(allowed);
  });

  it("lets certificates of a mesh speak by the documented rules", () => {
    const documented = markedBlock("node-rules");
    const rules = rulesOf(/^HEADGATE_CONTROL_NODES="\n([^"]+)"/m.exec(documented)?.[1] ?? "");
    const speaks = (name: string, node: string, cluster?: string): boolean =>
      allowsNode(rules, [name], { node, cluster });
    const sidecar = "spiffe://cluster.local/ns/web/sa/shop";
    expect(speaks(sidecar, webNode, "shop.web")).toBe(true);
    expect(speaks(sidecar, webNode, "shop.pay")).toBe(false);
    expect(speaks("spiffe://cluster.local/ns/pay/sa/shop", webNode, "shop.pay")).toBe(false);
    expect(speaks("edge-3.edge.shop.example", "edge-3")).toBe(true);
    expect(speaks("spiffe://shop.example/canary", "edge-3")).toBe(false);
  });

  it("finds nobody without a certificate", () => {
    expect(allowsNode(rulesOf("* *"), [], { node: "a" })).toBe(false);
    expect(allowsName(rulesOf("* *"), [])).toBe(false);
  });
});

describe("allowsName()", () => {
  it("knows whether any rule is for a certificate", () => {
    expect(allowsName(rulesOf(mesh), [web])).toBe(true);
    expect(allowsName(rulesOf(mesh), ["spiffe://other.example/ns/web/sa/edge"])).toBe(false);
  });
});

describe("parseNodeRules()", () => {
  it.each([
    ["", "must be rules NAME NODE [CLUSTER]"],
    ["spiffe://a/b", "rule 1 has no NODE"],
    ["a b,c d e f", "rule 2 has more than three words"],
    ["{a}.{a} b", "rule 1 has a part twice in NAME"],
    ["{a}{b} c", "rule 1 has two parts in NAME without text between them"],
    ["{a}.b {c}", "rule 1 has a {part} that is not in NAME"],
    ["a b {c}", "rule 1 has a {part} that is not in NAME"],
    ["{a b", "rule 1 has a brace that does not belong to a {part}"],
    ["{1}.a b", "rule 1 has a brace that does not belong to a {part}"],
    [`${"*.".repeat(namePartsMax + 1)}a b`, `more than ${namePartsMax} parts in NAME`],
    ["a b,".repeat(nodeRulesMax + 1), `must be at most ${nodeRulesMax} rules`],
  ])("refuses %j", (text, message) => {
    const parsed = parseNodeRules(text);
    expect(parsed.kind === "problem" && parsed.message).toContain(message);
  });

  it("takes as many as there may be", () => {
    expect(rulesOf("a b,".repeat(nodeRulesMax))).toHaveLength(nodeRulesMax);
    expect(rulesOf(`${"*.".repeat(namePartsMax)}a b`)).toHaveLength(1);
  });

  it("takes a part of a name for text, whatever stands in it", () => {
    const rules = rulesOf("{node}.example *-{node}-*");
    expect(allowsNode(rules, ["a*b.example"], { node: "x-aab-y" })).toBe(false);
    expect(allowsNode(rules, ["a*b.example"], { node: "x-a*b-y" })).toBe(true);
  });
});
