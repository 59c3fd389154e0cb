import type { DescMethod } from "@bufbuild/protobuf";
import type { AdminRole } from "../../core/base/access-list.js";
import {
  BudgetService,
  FleetService,
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
} from "../../gen/headgate/admin/v1/admin_pb.js";

/** The services of the admin port. */
const adminServices = [
  LimitService,
  PolicyService,
  QuotaService,
  RoomService,
  BudgetService,
  FleetService,
] as const;

/** Maximum size of a message of most methods, in bytes. Nothing that is stored is longer. */
export const adminMessageBytesMax = 262_144;

/** Maximum size of a message with a policy's texts, in bytes: that of a policy that is stored. */
export const policyMessageBytesMax = 4_194_304;

/** Maximum size of a message with a policy's texts and an access log, in bytes. */
export const replayMessageBytesMax = 2 * policyMessageBytesMax;

/** A method, and who may call it. */
export interface AdminMethod {
  readonly method: DescMethod;
  /** The role needed in any domain before the request is read. Services check which domain. */
  readonly role: AdminRole;
  readonly messageBytesMax: number;
  /** Whether its responses reveal single callers, so that the log names who has called. */
  readonly showsCallers: boolean;
}

/** Methods that change something. */
const operatorMethods: ReadonlySet<string> = new Set([
  "ResetKey",
  "SetOverride",
  "DeleteOverride",
  "ApplyPolicy",
  "EnforcePolicy",
  "RollBackPolicy",
  "SetRoomOverride",
  "LetIn",
  "TopUpBudget",
  "DeleteTopUp",
  "RefundBudget",
  "SetGateThresholds",
]);

/** Methods whose requests contain policies. */
const policyMethods: ReadonlySet<string> = new Set([
  "Explain",
  "ValidatePolicy",
  "ApplyPolicy",
  "TestPolicy",
]);

/** Methods whose responses contain callers' data, or how much of a limit one of them uses. */
const callerMethods: ReadonlySet<string> = new Set([
  "GetKey",
  "TopKeys",
  "NearLimitKeys",
  "TailDecisions",
  "ListOverrides",
  "Explain",
  "ListQuotaPools",
  "ExplainTicket",
  "ListBudgetAccounts",
  "GetBudgetAccount",
  "ListTopUps",
  "ListUsage",
  "ListAudit",
]);

function messageBytesMaxOf(name: string): number {
  if (name === "ReplayLog") return replayMessageBytesMax;
  return policyMethods.has(name) ? policyMessageBytesMax : adminMessageBytesMax;
}

/** Every method by its path, such as `/headgate.admin.v1.LimitService/GetKey`. */
export const adminMethods: ReadonlyMap<string, AdminMethod> = new Map(
  adminServices.flatMap((service) =>
    service.methods.map((method) => [
      `/${service.typeName}/${method.name}`,
      {
        method,
        role: operatorMethods.has(method.name) ? "operator" : "reader",
        messageBytesMax: messageBytesMaxOf(method.name),
        showsCallers: callerMethods.has(method.name),
      },
    ]),
  ),
);
