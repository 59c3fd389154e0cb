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

/** The longest message of most methods, in bytes; nothing that we keep is longer. */
export const adminMessageBytesMax = 262_144;

/** The longest message with a policy's texts, in bytes: as long as one may be that is kept. */
export const policyMessageBytesMax = 4_194_304;

/** The longest message with a policy's texts and an access log, in bytes. */
export const replayMessageBytesMax = 2 * policyMessageBytesMax;

/** A method, and who may call it. */
export interface AdminMethod {
  readonly method: DescMethod;
  /** What a caller needs somewhere, before the request is read; services look where. */
  readonly role: AdminRole;
  readonly messageBytesMax: number;
  /** Whether its answers tell of single callers: the log says who asked. */
  readonly showsCallers: boolean;
}

/** Those that change something. */
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

/** Those whose requests hold policies. */
const policyMethods: ReadonlySet<string> = new Set([
  "Explain",
  "ValidatePolicy",
  "ApplyPolicy",
  "TestPolicy",
]);

/** Those whose answers hold what callers send, or how much of a limit one of them uses. */
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
