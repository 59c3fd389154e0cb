import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { targetNames } from "../../src/generate/targets.js";
import { manyServices } from "../support/many-services.js";
import { layOut } from "./report.js";

/** What is aimed at for 100 services, in seconds of CPU. */
const aimedSeconds = 1.5;

/** How often each is run; the least counts, since other work only adds. */
const runCount = 3;

/** Flags without which a target cannot say what the policy says. */
const flagsOf: Readonly<Record<string, readonly string[]>> = {
  gateway: ["--gateway-version", "1.8"],
  kubernetes: ["--without-client-certificates"],
};

/** Loaded before the program: tells at the end what the process used, in microseconds. */
const cpuTeller =
  'process.on("exit",()=>{const{user,system}=process.cpuUsage();' +
  'process.stderr.write("cpu "+(user+system))})';

/** CPU of `headgate generate` for a policy of so many services, by target. It runs dist/. */
export function tellGenerate(serviceCount: number): string {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    const policy = join(folder, "policy.yaml");
    writeFileSync(policy, manyServices(serviceCount));
    const cells = targetNames.map((target) => {
      const seconds = Array.from({ length: runCount }, (_, run) => {
        const flags = [...(flagsOf[target] ?? []), "--out", join(folder, `${target}-${run}`)];
        const words = ["dist/cli/main.js", "generate", target, policy, ...flags];
        const loaded = ["--import", `data:text/javascript,${cpuTeller}`];
        const { status, stderr } = spawnSync(process.execPath, [...loaded, ...words], {
          encoding: "utf8",
        });
        if (status !== 0) throw new Error(`${target}: ${stderr.slice(-500)}`);
        return Number(/cpu (\d+)$/.exec(stderr)?.[1]) / 1_000_000;
      });
      return [target, Math.min(...seconds).toFixed(2)];
    });
    const aim = `CPU seconds (aimed at: ${aimedSeconds} for 100)`;
    return layOut([[`generate, ${serviceCount} services`, aim], ...cells]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
