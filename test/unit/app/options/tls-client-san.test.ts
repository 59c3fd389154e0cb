import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  type ClientSan,
  clientSanCharsMax,
  holdsSan,
  identityNames,
  parseClientSan,
  uriNames,
} from "../../../../src/app/options/tls-client-san.js";
import { type CertificateWish, TestAuthority } from "../../../support/certificates.js";

function parsed(text: string): ClientSan | string {
  const option = parseClientSan(text);
  return option.kind === "value" ? option.value : option.message;
}

const authority = new TestAuthority();

function holds(wish: CertificateWish, text: string): boolean {
  const san = parsed(text);
  if (typeof san === "string") throw new Error(san);
  return holdsSan(new X509Certificate(authority.issue(wish).certificate), san);
}

describe("parseClientSan()", () => {
  it.each([
    ["edge.shop.svc", "dns", "edge.shop.svc"],
    ["edge.shop.svc.", "dns", "edge.shop.svc"],
    ["envoy_1", "dns", "envoy_1"],
    ["10.0.0.7", "ip", "10.0.0.7"],
    ["[2001:db8::7]", "ip", "2001:db8::7"],
    ["2001:db8::7", "ip", "2001:db8::7"],
    ["spiffe://shop/ns/edge/sa/envoy", "uri", "spiffe://shop/ns/edge/sa/envoy"],
    ["urn:shop:edge", "uri", "urn:shop:edge"],
    ["edge@shop.example", "email", "edge@shop.example"],
  ])("takes %s for a name of the kind %s", (text, kind, value) => {
    expect(parsed(text)).toEqual({ kind, value });
  });

  it.each(["*.shop", ".shop", "shop:8080", "a b", "edge@", "shop..svc", "spiffe://shop/\u00e4"])(
    "refuses %s without repeating it",
    (text) => {
      expect(parsed(text)).toBe(
        "must be a DNS name without wildcards, a URI, an IP or an email address",
      );
    },
  );

  it("takes names up to a length", () => {
    const longest = `urn:${"a".repeat(clientSanCharsMax - 4)}`;
    expect(parsed(longest)).toMatchObject({ kind: "uri" });
    expect(typeof parsed(`${longest}a`)).toBe("string");
  });
});

describe("holdsSan()", () => {
  it.each<readonly [string, CertificateWish, string, boolean]>([
    ["the DNS name", { names: ["a.shop", "edge.shop"] }, "edge.shop", true],
    ["the DNS name in capitals", { names: ["EDGE.shop"] }, "edge.SHOP", true],
    ["a wildcard for its first label", { names: ["*.shop.io"] }, "edge.shop.io", true],
    ["a wildcard for two labels", { names: ["*.shop.io"] }, "a.edge.shop.io", false],
    ["a wildcard for part of a label", { names: ["e*.shop.io"] }, "edge.shop.io", false],
    ["a wildcard for a whole domain", { names: ["*.io"] }, "shop.io", false],
    ["a name below", { names: ["a.edge.shop"] }, "edge.shop", false],
    ["the name as common name only", { commonName: "edge.shop" }, "edge.shop", false],
    ["the name as a URI's host", { uris: ["spiffe://edge.shop/x"] }, "edge.shop", false],
    ["the address", { addresses: ["10.0.0.7"] }, "10.0.0.7", true],
    ["the address as a DNS name", { names: ["10.0.0.7"] }, "10.0.0.7", false],
    ["another address", { addresses: ["10.0.0.8"] }, "10.0.0.7", false],
    ["the URI", { uris: ["spiffe://shop/a", "spiffe://shop/edge"] }, "spiffe://shop/edge", true],
    ["a URI below", { uris: ["spiffe://shop/edge/x"] }, "spiffe://shop/edge", false],
    ["a URI in capitals", { uris: ["spiffe://shop/EDGE"] }, "spiffe://shop/edge", false],
    ["the mail address", { emails: ["edge@shop.example"] }, "edge@shop.example", true],
    ["another mail address", { emails: ["a@shop.example"] }, "edge@shop.example", false],
    ["no name", {}, "edge.shop", false],
  ])("judges a certificate with %s", (_what, wish, text, expected) => {
    expect(holds(wish, text)).toBe(expected);
  });

  it("is not led astray by a name that looks like several", () => {
    const uri = "urn:a, URI:spiffe://shop/edge";
    expect(holds({ uris: [uri] }, "spiffe://shop/edge")).toBe(false);
    const quoted = 'urn:a", URI:spiffe://shop/edge, DNS:"b';
    expect(holds({ uris: [quoted] }, "spiffe://shop/edge")).toBe(false);
    expect(holds({ names: ["x, URI:spiffe://shop/edge"] }, "spiffe://shop/edge")).toBe(false);
  });
});

describe("uriNames()", () => {
  it("reads the URIs that Node writes, in quotes or not", () => {
    const { subjectAltName } = new X509Certificate(
      authority.issue({
        names: ["edge.shop"],
        uris: ["spiffe://shop/edge", "urn:with, comma", 'urn:with"quote'],
        emails: ["edge@shop.example"],
        addresses: ["10.0.0.7"],
      }).certificate,
    );
    expect(uriNames(subjectAltName ?? "")).toEqual([
      "spiffe://shop/edge",
      "urn:with, comma",
      'urn:with"quote',
    ]);
  });
});

describe("identityNames()", () => {
  it("takes a name for what it is, and no part of one for another", () => {
    const { subjectAltName = "" } = new X509Certificate(
      authority.issue({
        names: ["edge.shop", "*.shop", "spiffe://shop/root", "edge shop"],
        uris: ["spiffe://shop/edge", "urn:x, DNS:root.shop, DNS:y", "root.shop", "urn:a\u001bb"],
        emails: ["edge@shop.example"],
      }).certificate,
    );
    expect(identityNames(subjectAltName)).toEqual(["spiffe://shop/edge", "edge.shop", "*.shop"]);
  });
});
