import { describe, expect, it } from "vitest";
import { gatewayInvariants } from "../support/gateway-invariants.js";
import { policyCases } from "../support/generated.js";
import {
  recordedTranslation,
  recordTranslation,
  type Translation,
  translatedCases,
  translationDigest,
  wholeTranslatedBootstrap,
} from "../support/translated.js";
import { meshCases, meshDigest, recordedMesh, recordMesh } from "../support/translated-istio.js";
import { ownFindings } from "../support/translated-lints.js";

/** The translator takes seconds; on a machine that is busy, many times that. */
const translateMsMax = 240_000;

const policies = policyCases();
const cases = [...translatedCases(), ...policies.filter(({ target }) => target === "gateway")].map(
  (given) => [given.name, given] as const,
);
const meshes = [...meshCases(), ...policies.filter(({ target }) => target === "istio")].map(
  (given) => [given.name, given] as const,
);

/**
 * What Envoy Gateway's and Istio's own translators make of golden cases: recorded where they are
 * updated (UPDATE_GOLDEN=1, with `egctl` and `istio-translate` on PATH).
 */
describe("recorded translations", () => {
  it.each(cases)(
    "%s is made of the objects that are generated now",
    (_, given) => {
      if (process.env["UPDATE_GOLDEN"] === "1") recordTranslation(given);
      const { madeOf, refusals } = recordedTranslation(given);
      expect(madeOf).toBe(translationDigest(given));
      expect(refusals).toEqual([]);
    },
    translateMsMax,
  );

  it.each(meshes)(
    "%s is made of the objects that are generated now",
    (_, given) => {
      if (process.env["UPDATE_GOLDEN"] === "1") recordMesh(given);
      expect(recordedMesh(given).madeOf).toBe(meshDigest(given));
    },
    translateMsMax,
  );

  it.each(
    Object.entries(gatewayInvariants).flatMap(([name, breaksOf]) =>
      cases.map(([, given]) => ({ name, given, breaksOf, of: given.name })),
    ),
  )("$of: $name", ({ given, breaksOf }) => {
    expect(breaksOf(recordedTranslation(given), given)).toEqual([]);
  });
});

describe("what Envoy Gateway makes of generated patches", () => {
  it.each(cases)("%s: has nothing that `check` finds fault with", (_, given) => {
    expect(ownFindings(wholeTranslatedBootstrap(given), given)).toEqual([]);
  });

  it("is found fault with where a quota's server is nowhere", () => {
    const given = cases.find(([name]) => name === "gateway/quotas")?.[1];
    if (given === undefined) throw new Error("no case");
    const text = JSON.stringify(wholeTranslatedBootstrap(given));
    const broken = JSON.parse(text.replaceAll('"headgate_control"', '"nowhere"'));
    expect(ownFindings(broken, given)).toContainEqual(expect.stringMatching(/^HG416 .*"nowhere"/));
  });
});

describe("what Envoy Gateway makes of limits of connections", () => {
  it("puts them at the TCP listener of this name", () => {
    const given = cases.find(([name]) => name === "gateway/tcp")?.[1];
    const { listeners = [] } = (given && recordedTranslation(given)) ?? {};
    expect(listeners.find(({ name }) => name === "headgate/shop/cache")).toMatchObject({
      filterChains: [
        {
          filters: [
            {
              name: "envoy.filters.network.connection_limit",
              typedConfig: { maxConnections: "500" },
            },
            { name: "envoy.filters.network.tcp_proxy", typedConfig: { idleTimeout: "600s" } },
          ],
        },
      ],
    });
  });
});

/** A translation in which a text was replaced wherever it stands, or once. */
function altered(name: string, from: string | RegExp, to: string) {
  const given = cases.find(([one]) => one === name)?.[1];
  if (given === undefined) throw new Error(`no case ${name}`);
  const text = JSON.stringify(recordedTranslation(given));
  const broken: Translation = JSON.parse(text.replace(from, to));
  expect(JSON.stringify(broken)).not.toBe(text);
  return { given, of: broken };
}

/** How each of them is broken by what once was generated, or easily could be. */
describe("gatewayInvariants", () => {
  it.each([
    // A class that forwards without the API key.
    [
      "no route forwards without the filters of the routes that it precedes",
      "gateway/authentication",
      /"directResponse"/g,
      '"route"',
      "api_key_auth",
    ],
    // A filter that is on wherever it is not turned off.
    [
      "no filter acts on a host that its service does not have",
      "gateway/protections",
      '"disabled":true,"name":"envoy.filters.http.admission_control"',
      '"name":"envoy.filters.http.admission_control"',
      "admission_control acts on every host",
    ],
    // A bucket for everybody.
    [
      "no filter acts on a host that its service does not have",
      "gateway/local-rate-limit",
      '"statPrefix":"headgate"',
      '"statPrefix":"headgate","tokenBucket":{}',
      "local_ratelimit acts on every host",
    ],
    // A patch of the service beside.
    [
      "no filter acts on a host that its service does not have",
      "gateway/protections",
      '"config":{}}}},{"domains":["stranger',
      '"config":{}},"envoy.filters.http.admission_control":{}}},{"domains":["stranger',
      "admission_control is a stranger's",
    ],
    // The second listener is as Envoy Gateway made it.
    [
      "every listener has what is generated",
      "gateway/authentication",
      '"name":"envoy.filters.http.header_mutation.priority"',
      '"name":"other"',
      "has no envoy.filters.http.header_mutation.priority",
    ],
    [
      "every listener has what is generated",
      "gateway/authentication",
      '"localReplyConfig"',
      '"otherConfig"',
      "has no local replies",
    ],
    // HTTP/3 beside HTTPS, of which only one is patched.
    [
      "every listener has what is generated",
      "gateway/http3",
      /"localReplyConfig"(?!.*"localReplyConfig")/,
      '"otherConfig"',
      "headgate/shop/https: it has no local replies",
    ],
    [
      "every listener has what is generated",
      "gateway/protections",
      '"domains":["orders.example.com"]',
      '"domains":["other.example.com"]',
      "headgate/shop/http: it has no orders.example.com",
    ],
    // Rules that no route asks for, and tokens that are never told.
    [
      "every limit is asked for, at every listener",
      "gateway/rate-limit",
      /"envoy.filters.http.ratelimit":\{"@type":"[^"]*RateLimitPerRoute"/g,
      '"other":{"@type":"x"',
      "nothing asks for rule 0",
    ],
    [
      "every limit is asked for, at every listener",
      "gateway/token-budgets",
      '"applyOnStreamDone":true',
      '"applyOnStreamDone":false',
      "nothing asks for rule",
    ],
  ] as const)("finds: %s (%s)", (name, case_, from, to, found) => {
    const { of, given } = altered(case_, from, to);
    expect(gatewayInvariants[name]?.(of, given).join("\n")).toContain(found);
  });
});
