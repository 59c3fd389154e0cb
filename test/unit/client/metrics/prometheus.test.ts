import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { createAdmission } from "../../../../src/client/create-admission.js";
import { libraryMetrics } from "../../../../src/client/metrics/library-metrics.js";
import { addMetrics } from "../../../../src/client/metrics/prometheus.js";
import { measuredParts } from "../../../support/measured-parts.js";

describe("addMetrics()", () => {
  it("shows each part's state and counts as they are at the scrape", async () => {
    const registry = new Registry();
    const measured = await measuredParts();
    addMetrics(registry, measured);
    const lines = (await registry.metrics()).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        'headgate_client_limit{admission="orders"} 1',
        'headgate_client_limit{admission="unlimited"} +Inf',
        'headgate_client_calls_total{admission="orders"} 2',
        'headgate_client_breaker_state{admission="orders",state="closed"} 1',
        'headgate_client_breaker_state{admission="orders",state="open"} 0',
        'headgate_client_outcomes_total{admission="orders",outcome="served"} 1',
        'headgate_client_refused_total{admission="orders",cause="concurrency"} 1',
        'headgate_server_in_flight_requests{admission="shop"} 2',
        'headgate_server_admitted_total{admission="shop",priority="critical"} 2',
        'headgate_server_refused_total{admission="shop",priority="low",cause="priority"} 1',
        'headgate_server_outcomes_total{admission="shop",outcome="success"} 1',
        'headgate_window_size{admission="auth"} 20',
        'headgate_window_completed_total{admission="auth"} 1',
      ]),
    );
    await measured.calls[0]?.run(async () => 3);
    expect(await registry.metrics()).toContain('headgate_client_calls_total{admission="orders"} 3');
    const kinds = lines.filter((line) => line.startsWith("# TYPE")).map((line) => line.slice(7));
    expect(kinds).toEqual(libraryMetrics.map(({ name, kind }) => `${name} ${kind}`));
  });

  it("refuses two admissions of one name, whose series would be one", () => {
    const twice = [createAdmission({ name: "orders" }), createAdmission({ name: "orders" })];
    const add = () => addMetrics(new Registry(), { calls: twice });
    expect(add).toThrow("two admissions have the name orders");
  });
});
