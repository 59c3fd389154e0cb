const perSecond = "{unit: second, requests_per_unit: 10}";

/**
 * Policies with one mistake, and their corrections. A test checks each: the wrong one has the id,
 * and the right one has no problem.
 */
export const problemExamples: Readonly<
  Partial<Record<string, { readonly wrong: string; readonly right: string }>>
> = {
  HG101: limits("{key: user, rate_limit: {unit: second", "{key: user, rate_limit: PERSECOND}"),
  HG103: limits(
    "{key: user, key: plan, rate_limit: PERSECOND}",
    "{key: user, rate_limit: PERSECOND}",
  ),
  HG120: limits(
    "{key: user, rate_limit: {unit: second, reqests_per_unit: 10}}",
    "{key: user, rate_limit: {unit: second, requests_per_unit: 10}}",
  ),
  HG124: limits("[key, user]", "{key: user, rate_limit: PERSECOND}"),
  HG125: limits("{rate_limit: PERSECOND}", "{key: user, rate_limit: PERSECOND}"),
  HG130: limits('{key: "", rate_limit: PERSECOND}', "{key: user, rate_limit: PERSECOND}"),
  HG140: limits(
    '{key: user, rate_limit: {unit: second, requests_per_unit: "10"}}',
    "{key: user, rate_limit: {unit: second, requests_per_unit: 10}}",
  ),
  HG141: limits(
    "{key: user, rate_limit: {unit: second, requests_per_unit: -1}}",
    "{key: user, rate_limit: {unit: second, requests_per_unit: 10}}",
  ),
  HG142: limits(
    "{key: user, rate_limit: {unit: minut, requests_per_unit: 10}}",
    "{key: user, rate_limit: {unit: minute, requests_per_unit: 10}}",
  ),
  HG151: limits(
    "{key: user, rate_limit: PERSECOND}\n  - {key: user, rate_limit: PERSECOND}",
    "{key: user, rate_limit: PERSECOND}\n  - {key: user, value: ann, rate_limit: PERSECOND}",
  ),
  HG201: service(
    "admission: {maxInFlight: 10, queue: {size: 5, maxWait: 1.5s}}",
    "admission: {maxInFlight: 10, queue: {size: 5, maxWait: 1s500ms}}",
  ),
  HG203: service(
    "concurrency: {law: vegas, limits: {min: 50, initial: 10, max: 40}}",
    "concurrency: {law: vegas, limits: {min: 5, initial: 10, max: 40}}",
  ),
  HG210: service(
    "priority: {rules: [{when: 'request.path ==', is: low}]}",
    "priority: {rules: [{when: 'request.path == \"/reports\"', is: low}]}",
  ),
  HG222: service("hosts: ['https://orders']", "hosts: [orders.shop.example]"),
  HG225: service("priority: {bypassPaths: [healthz]}", "priority: {bypassPaths: [/healthz]}"),
  HG230: service(
    "rateLimit: {domain: shop, descriptors: [[remote_address]]}",
    "admission: {maxInFlight: 10}",
  ),
  HG260: quota("bucket: [remote_address], ttl: 2500ms", "bucket: [remote_address], ttl: 3s"),
  HG264: quota("bucket: [{header: x-user, as: usr}]", "bucket: [{header: x-user, as: user}]"),
  HG269: quota(
    "bucket: [remote_address], beforeAssignment: limit",
    "bucket: [remote_address], beforeAssignment: deny",
  ),
  HG273: room(
    "events: [{name: sale, start: 2026-11-27 09:00, end: 2026-11-28T09:00:00Z}]",
    "events: [{name: sale, start: 2026-11-27T09:00:00Z, end: 2026-11-28T09:00:00Z}]",
  ),
  HG275: room(
    "page: {template: '{{place}} of {{ahead}}'}",
    "page: {template: '{{position}} of {{ahead}}'}",
  ),
  HG278: room(
    "match: {paths: [/shop/*]}, endpoint: /shop",
    "match: {paths: [/shop/*]}, endpoint: /shop/.room",
  ),
  HG279: room("cookie: {sameSite: none, secure: false}", "cookie: {sameSite: none}"),
  HG290: budget(
    "amount: 5 EUR, period: day, over: {annotate: {headers: {host: slow}}}",
    "amount: 5 EUR, period: day, over: {annotate: {headers: {x-budget: exceeded}}}",
  ),
  HG292: budget("amount: 5EUR, period: day", "amount: 5 EUR, period: day"),
  HG293: budget("amount: 5 USD, period: day", "amount: 5 EUR, period: day"),
  HG298: budget(
    "services: [lm], amount: 5 EUR, period: day",
    "services: [llm], amount: 5 EUR, period: day",
  ),
  HG299: budget(
    "per: [model], amount: 5 EUR, period: day, overrides: [{values: [a, b], amount: 9 EUR}]",
    "per: [model], amount: 5 EUR, period: day, overrides: [{values: [a], amount: 9 EUR}]",
  ),
};

/** Returns one descriptor, wrong and right. */
function limits(wrong: string, right: string): { readonly wrong: string; readonly right: string } {
  const whole = (text: string): string =>
    `domain: shop\ndescriptors:\n  - ${text.replaceAll("PERSECOND", perSecond)}`;
  return { wrong: whole(wrong), right: whole(right) };
}

/** Returns one line of a service, wrong and right. */
function service(wrong: string, right: string): { readonly wrong: string; readonly right: string } {
  const whole = (text: string): string =>
    [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: shop}",
      "spec:",
      "  services:",
      "    - name: orders",
      `      ${text}`,
    ].join("\n");
  return { wrong: whole(wrong), right: whole(right) };
}

/** Returns the names of one quota, wrong and right. */
function quota(wrong: string, right: string): { readonly wrong: string; readonly right: string } {
  const whole = (text: string): string =>
    [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: shop}",
      "spec:",
      "  rateLimits:",
      "    - domain: shop",
      "      descriptors:",
      `        - {key: user, rate_limit: ${perSecond}}`,
      `        - {key: remote_address, rate_limit: ${perSecond}}`,
      "  quotas:",
      `    - {name: callers, domain: shop, ${text}}`,
      "",
    ].join("\n");
  return { wrong: whole(wrong), right: whole(right) };
}

/** Returns the names of one waiting room, wrong and right. */
function room(wrong: string, right: string): { readonly wrong: string; readonly right: string } {
  const whole = (text: string): string =>
    [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: shop}",
      "spec:",
      "  services: [{name: shop, admission: {}}]",
      "  waitingRooms:",
      `    - {name: lobby, service: shop, ${text}}`,
      "",
    ].join("\n");
  return { wrong: whole(wrong), right: whole(right) };
}

/** Returns the names of one budget, wrong and right. */
function budget(wrong: string, right: string): { readonly wrong: string; readonly right: string } {
  const whole = (text: string): string =>
    [
      "apiVersion: headgate.dev/v1alpha1",
      "kind: Policy",
      "metadata: {name: llm}",
      "spec:",
      "  prices: {currency: EUR, models: [{model: '*', input: 2.50, output: 10}]}",
      "  services: [{name: llm, usage: {}}]",
      "  budgets:",
      `    - {name: spending, ${text}}`,
      "",
    ].join("\n");
  return { wrong: whole(wrong), right: whole(right) };
}
