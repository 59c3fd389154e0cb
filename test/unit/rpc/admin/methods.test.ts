import { describe, expect, it } from "vitest";
import {
  adminMethods,
  messageBytesMax,
  policyMessageBytesMax,
} from "../../../../src/rpc/admin/methods.js";

describe("adminMethods", () => {
  it("knows who may call each method, and how long its messages are", () => {
    const rows = [...adminMethods].map(([path, { role, messageBytesMax: bytes }]) => {
      const size = bytes === policyMessageBytesMax ? "policy" : "short";
      return `${path.split(".").at(-1)} ${role} ${size}`;
    });
    expect(rows).toEqual([
      "LimitService/ListRules reader short",
      "LimitService/GetKey reader short",
      "LimitService/TopKeys reader short",
      "LimitService/NearLimitKeys reader short",
      "LimitService/TailDecisions reader short",
      "LimitService/ResetKey operator short",
      "LimitService/SetOverride operator short",
      "LimitService/DeleteOverride operator short",
      "LimitService/ListOverrides reader short",
      "LimitService/Explain reader policy",
      "PolicyService/GetPolicy reader short",
      "PolicyService/ListPolicies reader short",
      "PolicyService/ValidatePolicy reader policy",
      "PolicyService/ApplyPolicy operator policy",
      "PolicyService/EnforcePolicy operator short",
      "PolicyService/RollBackPolicy operator short",
      "PolicyService/GetShadowReport reader short",
      "QuotaService/ListQuotas reader short",
      "QuotaService/ListQuotaPools reader short",
      "FleetService/ListServices reader short",
      "FleetService/GetFleet reader short",
      "FleetService/GetGateThresholds reader short",
      "FleetService/SetGateThresholds operator short",
      "FleetService/ListAudit reader short",
    ]);
    expect(messageBytesMax).toBeLessThan(policyMessageBytesMax);
  });
});
