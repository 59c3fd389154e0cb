import { existsSync } from "node:fs";
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freePort } from "./free-port.js";
import { missingProgramMark, requireProgram } from "./programs.js";
import { runPromtool } from "./promtool.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/**
 * Starts a real Prometheus that has known samples and scrapes nobody, until the stage's end.
 *
 * @param openMetrics the samples, with times
 * @returns its URL
 */
export async function startPrometheus(stage: Stage, openMetrics: string): Promise<string> {
  const folder = join(stage.folder, "prometheus");
  await mkdir(folder);
  const samples = join(folder, "samples.txt");
  await writeFile(samples, openMetrics);
  const data = join(folder, "data");
  const args = ["tsdb", "create-blocks-from", "openmetrics", samples, data];
  const { isOk, output } = await runPromtool(stage, args);
  if (!isOk) throw new Error(`promtool takes no samples: ${output}`);
  return serve(stage, { folder, data, config: "scrape_configs: []\n" });
}

/**
 * Starts a real Prometheus that scrapes a port of this machine every 200 ms and keeps exemplars.
 *
 * @returns its URL
 */
export async function startScrapingPrometheus(stage: Stage, port: number): Promise<string> {
  const folder = join(stage.folder, "prometheus");
  await mkdir(folder);
  const config = `scrape_configs:
  - job_name: headgate
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{targets: ["127.0.0.1:${port}"]}]
`;
  return serve(stage, { folder, data: join(folder, "data"), config });
}

async function serve(
  stage: Stage,
  place: { readonly folder: string; readonly data: string; readonly config: string },
): Promise<string> {
  const config = join(place.folder, "prometheus.yml");
  await writeFile(config, place.config);
  const port = await freePort();
  stage.spawn({
    name: "prometheus",
    file: await findPrometheus(),
    args: [
      `--config.file=${config}`,
      `--storage.tsdb.path=${place.data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--enable-feature=exemplar-storage",
    ],
  });
  const url = `http://127.0.0.1:${port}`;
  await waitFor("Prometheus is ready", async () => {
    const answer = await fetch(`${url}/-/ready`).catch(() => undefined);
    return answer?.status === 200 ? true : undefined;
  });
  return url;
}

/** The server stands beside promtool: in the same folder, or in that of an unpacked package. */
async function findPrometheus(): Promise<string> {
  const folder = dirname(await realpath(await requireProgram("promtool")));
  const found = [join(folder, "prometheus"), join(folder, "../usr/bin/prometheus")].find((path) =>
    existsSync(path),
  );
  if (found !== undefined) return found;
  throw new Error(`${missingProgramMark} prometheus: there is none beside promtool in ${folder}`);
}
