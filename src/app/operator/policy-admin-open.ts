import type { Clock, Random } from "../../core/base/clock.js";
import {
  InProcessLedger,
  RedisLedger,
  type ShadowLedger,
} from "../../fleet/claims/shadow-ledger.js";
import { GateRegistry } from "../../fleet/records/gate-registry.js";
import { sha256 } from "../base/digest.js";
import type { Logger } from "../base/logger.js";
import type { Config } from "../config/config.js";
import { switchesOf } from "../options/decision-options.js";
import type { OpenPolicies } from "../policy/policies.js";
import type { ParsesPolicies } from "../policy/policy-parsing.js";
import type { OpenStore } from "../store/store.js";
import { GateAdmin } from "./gate-admin.js";
import type { OperatorRecords } from "./operator-records.js";
import { PolicyAdmin } from "./policy-admin.js";
import { PolicyShadow } from "./policy-admin-shadow.js";

/** What operators' changes of policies and gates are opened with. */
export interface PolicyOperationsParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly parser: ParsesPolicies;
  readonly policies: OpenPolicies;
  readonly opened: OpenStore;
  readonly operator: OperatorRecords;
  /** What this replica is called in the audit log. */
  readonly replica: string;
  /** Whether this process has no time, or no store, for what nobody waits for. */
  readonly isBusy: () => boolean;
}

/** What operators change about policies and gates, for all replicas of a store. */
export interface PolicyOperations {
  /** What gates go by. */
  readonly gates: GateRegistry;
  /** The shadow policy. */
  readonly shadow: PolicyShadow;
  readonly policyAdmin: PolicyAdmin;
  readonly gateAdmin: GateAdmin;
  /** Ends what runs by itself. */
  readonly close: () => void;
}

/** Opens what operators change about policies and gates. */
export function openPolicyOperations(parts: PolicyOperationsParts): PolicyOperations {
  const { config, policies, opened, operator } = parts;
  const { records, overrides } = operator;
  const { storeBudgetMs, newKeysPerSecondMax } = config;
  const gates = new GateRegistry(records);
  const shadow = new PolicyShadow({
    ...parts,
    records,
    overrides,
    ledger: openLedger(parts),
    policies: policies.feed,
    openSpace: opened.openSpace,
    liveNameOf: (key) => opened.store.shorten?.(key) ?? key,
    parse: policies.parse,
    storeBudgetMs,
    newKeysPerSecondMax,
    switches: switchesOf(config),
    digest: sha256,
  });
  return {
    gates,
    shadow,
    policyAdmin: new PolicyAdmin({ ...parts, records, shadow }),
    gateAdmin: new GateAdmin({ ...parts, records, gates, policies: policies.feed }),
    close: () => {
      shadow.close();
      gates.close();
    },
  };
}

function openLedger({ opened, clock, random, config }: PolicyOperationsParts): ShadowLedger {
  if (opened.kind === "memory") return new InProcessLedger(clock);
  const { keyPrefix } = config;
  return new RedisLedger({ connection: opened.connections.background, clock, random, keyPrefix });
}
