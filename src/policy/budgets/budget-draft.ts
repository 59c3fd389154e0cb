import type { ParsedNode } from "yaml";
import type { Block } from "../text/block.js";
import type { NodeReader } from "../text/node-reader.js";
import type { PlacedValue } from "../text/object.js";
import type { WrittenAmount } from "./amount.js";
import type { BudgetPolicy, ServiceUsage } from "./budget-policy.js";

/** A budget as read. Its unit may be defined in another file. */
export interface BudgetDraft {
  readonly budget: Omit<BudgetPolicy, "unit" | "amount" | "overrides">;
  readonly block: Block;
  readonly amount: PlacedValue<WrittenAmount>;
  readonly overrides: readonly {
    readonly values: readonly string[];
    readonly amount: PlacedValue<WrittenAmount>;
  }[];
  readonly serviceNodes: readonly ParsedNode[];
}

/** A service whose usage is measured, and the place in the policy. */
export interface MeasuredService {
  readonly name: string;
  readonly usage: ServiceUsage;
  readonly node: ParsedNode;
  readonly reader: NodeReader;
}
