import { beforeAll, describe, expect, it } from "vitest";
import { type DropIn, startDropIn, statistics } from "../support/drop-in.js";
import type { AskedDescriptor } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const policy = `domain: edge
descriptors:
  - {key: one, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: ten, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: wide, rate_limit: {unit: year, requests_per_unit: 10}}
`;

const hits = "ratelimit.service.rate_limit.edge";

const stage = useStage("file");
let service: DropIn;

beforeAll(async () => {
  service = await startDropIn(stage, { policy });
});

function ask(...descriptors: readonly (AskedDescriptor | readonly string[])[]): Promise<string> {
  return service.askAll({ descriptors });
}

/** The seconds until each limit of an answer has room. */
async function waitsOf(...descriptors: readonly (readonly string[])[]): Promise<unknown> {
  const answer = await service.client.ask({ descriptors });
  if (answer.kind === "failed") throw new Error(answer.details);
  return answer.response.statuses.map(({ durationUntilReset }) =>
    Number(durationUntilReset?.seconds ?? 0),
  );
}

describe("a refusal from memory", () => {
  it("tells of an exhausted limit that it is over, and its wait", async () => {
    expect(await ask(["one=a"])).toBe("OK: 0/1");
    expect(await ask(["one=a"])).toBe("OVER: over 0/1");
    expect(await service.askAll({ descriptors: [["ten=a"]], hits: 10 })).toBe("OK: 0/10");
    for (let i = 0; i < 3; i += 1) {
      expect(await ask(["one=a"], ["ten=a"])).toBe("OVER: over 0/1, over 0/10");
    }
    // A hit of `ten` comes back in a tenth of a year.
    const [day, tenth] = [86_400, 3_153_600];
    const [one, ten] = (await waitsOf(["one=a"], ["ten=a"])) as [number, number];
    expect([one <= day, one > 0.9 * day]).toEqual([true, true]);
    expect([ten <= tenth, ten > 0.9 * tenth]).toEqual([true, true]);
    const all = await statistics(service.headgate);
    expect(all.get(`${hits}.ten.within_limit`)).toBe(10);
    expect(all.get(`${hits}.ten.over_limit`)).toBe(4);
  });

  it("says of a limit with room that it is not known, and counts nothing of it", async () => {
    await ask(["one=b"]);
    let askedCount = 0;
    const unknown = await waitFor("a refusal from memory", async () => {
      const answer = await ask(["one=b"], ["wide=b"]);
      if (answer.endsWith("unknown")) return answer;
      expect(answer).toBe("OVER: over 0/1, 10/10");
      askedCount += 1;
      return undefined;
    });
    expect(unknown).toBe("OVER: over 0/1, unknown");
    const all = await statistics(service.headgate);
    expect(all.get(`${hits}.wide.total_hits`)).toBe(askedCount);
    expect(all.get(`${hits}.wide.within_limit`)).toBe(askedCount);
  });

  it("ends at once where hits are given back", async () => {
    await ask(["one=c"]);
    for (let i = 0; i < 20; i += 1) {
      expect(await ask(["one=c"])).toBe("OVER: over 0/1");
      await ask({ entries: ["one=c"], isRefund: true });
      expect(await ask(["one=c"])).toBe("OK: 0/1");
    }
  });
});
