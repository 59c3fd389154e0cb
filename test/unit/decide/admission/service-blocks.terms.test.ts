import { describe, expect, it } from "vitest";
import { priorities } from "../../../../src/core/admission/priority.js";
import { AdmissionRig, testService } from "../../../support/admission.js";

describe("AdmissionTerms", () => {
  it("asks for response headers of a share of the exchanges, and for no others", () => {
    const rig = new AdmissionRig([testService({ sampleRatio: 0.3 })]);
    rig.draw = 0.29;
    expect(rig.ask().terms[0]?.responseHeaders).toBe("send");
    rig.draw = 0.3;
    expect(rig.ask().terms[0]?.responseHeaders).toBe("skip");
  });

  it("leaves Envoy's configuration alone where all are wanted", () => {
    const rig = new AdmissionRig([testService({})]);
    expect(rig.ask().terms[0]).toMatchObject({ responseHeaders: undefined, isFollowed: true });
  });

  it.each([
    { followed: "with", admission: {} },
    { followed: "without", admission: undefined },
  ])("tells the upstream and other filters the class, $followed admission", ({ admission }) => {
    const rig = new AdmissionRig([testService(admission)]);
    for (const priority of priorities) {
      const [terms] = rig.ask({ priority }).terms;
      expect(terms?.priority).toBe(priority);
      expect(terms?.setHeaders).toEqual([{ name: "x-request-priority", value: priority }]);
      expect(Object.fromEntries(terms?.metadata ?? [])).toEqual({ priority, service: "orders" });
    }
  });

  it("makes nothing new for requests that say nothing of their time", () => {
    const deadline = { minRemainingMs: 5, marginMs: 10, header: undefined };
    const rig = new AdmissionRig([testService({ deadline })]);
    const [one, other] = rig.askMany(2);
    expect(one?.terms[0]).toBe(other?.terms[0]);
  });
});
