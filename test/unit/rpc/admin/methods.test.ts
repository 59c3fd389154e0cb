import { describe, expect, it } from "vitest";
import {
  adminMessageBytesMax,
  adminMethods,
  policyMessageBytesMax,
  replayMessageBytesMax,
} from "../../../../src/rpc/admin/methods.js";

const sizes = new Map([
  [adminMessageBytesMax, "short"],
  [policyMessageBytesMax, "policy"],
  [replayMessageBytesMax, "replay"],
]);

describe("adminMethods", () => {
  it("knows who may call each method, how long its messages are, and whom it tells of", () => {
    const rows = [...adminMethods].map(([path, { role, messageBytesMax: bytes, showsCallers }]) => {
      const size = sizes.get(bytes);
      return `${path.split(".").at(-1)} ${role} ${size}${showsCallers ? " callers" : ""}`;
    });
    expect(rows).toEqual([
      "LimitService/ListRules reader short",
      "LimitService/GetKey reader short callers",
      "LimitService/TopKeys reader short callers",
      "LimitService/NearLimitKeys reader short callers",
      "LimitService/TailDecisions reader short callers",
      "LimitService/ResetKey operator short",
      "LimitService/SetOverride operator short",
      "LimitService/DeleteOverride operator short",
      "LimitService/ListOverrides reader short callers",
      "LimitService/Explain reader policy callers",
      "PolicyService/GetPolicy reader short",
      "PolicyService/ListPolicies reader short",
      "PolicyService/ValidatePolicy reader policy",
      "PolicyService/ApplyPolicy operator policy",
      "PolicyService/EnforcePolicy operator short",
      "PolicyService/RollBackPolicy operator short",
      "PolicyService/GetShadowReport reader short",
      "PolicyService/TestPolicy reader policy",
      "PolicyService/ReplayLog reader replay",
      "QuotaService/ListQuotas reader short",
      "QuotaService/ListQuotaPools reader short callers",
      "RoomService/ListRooms reader short",
      "RoomService/SetRoomOverride operator short",
      "RoomService/LetIn operator short",
      "RoomService/ExplainTicket reader short callers",
      "BudgetService/ListBudgets reader short",
      "BudgetService/ListBudgetAccounts reader short callers",
      "BudgetService/GetBudgetAccount reader short callers",
      "BudgetService/TopUpBudget operator short",
      "BudgetService/DeleteTopUp operator short",
      "BudgetService/ListTopUps reader short callers",
      "BudgetService/RefundBudget operator short",
      "BudgetService/ListUsage reader short callers",
      "FleetService/ListServices reader short",
      "FleetService/GetFleet reader short",
      "FleetService/GetGateThresholds reader short",
      "FleetService/SetGateThresholds operator short",
      "FleetService/ListAudit reader short callers",
      "FleetService/GetHistory reader short",
      "FleetService/GetFindings reader short",
    ]);
    expect(adminMessageBytesMax).toBeLessThan(policyMessageBytesMax);
  });
});
