import { describe, expect, it } from "vitest";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HttpClient } from "../support/http-client.js";
import { readPage } from "../support/promql.js";
import { useStage } from "../support/stage.js";
import { startUpstream } from "../support/upstream.js";

const stage = useStage("test");

/** Story: dashboards and alerts asked for Envoys' metrics, and no generated proxy showed them. */
describe("the statistics port of a generated Envoy", () => {
  it("shows Prometheus its metrics, and nothing else of the admin port", async () => {
    const upstream = await startUpstream(stage);
    const { envoy, ports } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
      `,
    });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    await http.send({ port: envoy.port, path: "/" });
    const ask = (path: string, method = "GET") => {
      return http.send({ port: ports.statisticsPort, path, method });
    };
    const { status, body } = await ask("/stats/prometheus");
    expect(status).toBe(200);
    expect(readPage(body).get("envoy_cluster_membership_healthy")).toContain("envoy_cluster_name");
    const refused = [
      ...[
        "/",
        "/stats",
        "/config_dump",
        "/certs",
        "/stats/prometheus/",
        "/stats/prometheus/../../",
      ],
      ...["/stats%2Fprometheus", "//stats/prometheus"],
    ];
    for (const path of refused) expect((await ask(path)).status, path).toBe(404);
    for (const path of ["/stats/prometheus", "/quitquitquit", "/reset_counters"]) {
      expect((await ask(path, "POST")).status, path).toBe(404);
    }
  });
});
